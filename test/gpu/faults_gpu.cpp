// SPDX-License-Identifier: Apache-2.0
// Faults that need a real GPU: memory nearly full, runs without end, buffers beyond 4 GiB. One program without other
// files: `./dev test-gpu --faults`, or copied. A line for each part, then "N passed, N failed, N skipped".
//
//   faults_gpu [--small]     on the device that PUMICE_DEVICE names; --small: sizes with which a CPU driver tries it
#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>

#include "test/graph/make.h"
#include "vulkan/memory.h"

namespace pumice::engine::test {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint16_t kHalves[] = {0x3c00, 0x4000, 0x4200};  // 1, 2 and 3 as fp16

struct Skip {
  const char* why;
};
struct Wrong {
  std::string why;
};
void require(bool good, const std::string& why) {
  if (!good) throw Wrong{why};
}

struct Sizes {
  int64_t chain_n, far_count, weight_rows, serial_count;
  double limit_s;
};
constexpr Sizes kLarge{8192, int64_t{3} << 27, 1'040'000, int64_t{1} << 27, 3},
    kSmall{384, 1 << 20, 4096, 1 << 20, 0.5};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Arg list(std::vector<int64_t> numbers) {
  return {ArgKind::ints, 0, 0, std::move(numbers)};
}

std::shared_ptr<const pumice::engine::Model> load(const std::shared_ptr<Device>& device, const Maker& maker) {
  return pumice::engine::Model::load([&] { return device; }, maker.file());
}

// A model that is right or wrong at a glance: y = 2 x + 1.
class Small {
 public:
  explicit Small(const std::shared_ptr<Device>& device) {
    Maker maker;
    const uint32_t x = maker.value(ValueKind::input, DType::f32, {fixed(64)}, -1, "x");
    const uint32_t two = maker.value(ValueKind::scratch, DType::f32, {fixed(64)});
    const uint32_t y = maker.value(ValueKind::output, DType::f32, {fixed(64)});
    maker.op("add", {tensor(x), tensor(x), real(1)}, {two});
    maker.op("add", {tensor(two), integer(1), real(1)}, {y});
    session_ = load(device, maker)->session();
  }
  void run_once() {
    std::vector<float> x(64);
    std::iota(x.begin(), x.end(), static_cast<float>(++runs_));
    session_->run(0, std::vector{view(DType::f32, x, {64})});
    const std::vector<float> y = output<float>(*session_, 0);
    for (size_t i = 0; i < x.size(); ++i) require(y[i] == 2 * x[i] + 1, "another session's result is wrong");
  }
  int runs() const { return runs_; }

 private:
  std::unique_ptr<Session> session_;
  int runs_ = 0;
};

// 2000 products of square matrices, one after the other: minutes.
Maker chain(int64_t n, int products = 2000) {
  Maker maker;
  const std::vector<SymInt> dims{fixed(n), fixed(n)};
  const uint32_t one = maker.value(ValueKind::scratch, DType::f32, dims);
  maker.op("full", {real(0.5), list({n, n})}, {one});
  uint32_t last = one;
  for (int i = 0; i < products; ++i) {
    const uint32_t next = maker.value(i == products - 1 ? ValueKind::output : ValueKind::scratch, DType::f32, dims);
    maker.op("matmul", {tensor(last), tensor(one), {}, list({0, 1}), list({0, 1}), integer(0)}, {next});
    last = next;
  }
  return maker;
}

// Runs it into its time limit; returns the seconds that took.
double time_out(Session& session, double limit_s) {
  std::string got = "it ended before its limit";
  const double took = seconds_of([&] {
    try {
      session.run(0, {});
    } catch (const Error& error) {
      got = error.code() == Code::Timeout ? "" : std::string(name(error.code())) + ": " + error.what();
    }
  });
  require(got.empty(), got);
  require(took < limit_s + 2, format("it ended after %.1f s, its limit is %.1f s", took, limit_s));
  return took;
}

// Tensors t0 = 0, 1, ..., count - 1 and t(i) = t0 + i, all alive at once; outputs: the two ends of each.
constexpr int64_t kEnd = 1024;
Maker many_tensors(int64_t count, int tensors) {
  Maker maker;
  std::vector<uint32_t> all{maker.value(ValueKind::scratch, DType::i32, {fixed(count)})};
  maker.op("arange", {integer(0), integer(1), integer(count)}, {all[0]});
  for (int i = 1; i < tensors; ++i) {
    all.push_back(maker.value(ValueKind::scratch, DType::i32, {fixed(count)}));
    maker.op("add", {tensor(all[0]), integer(i), real(1)}, {all.back()});
  }
  for (const uint32_t each : all) {
    for (const int64_t start : {int64_t{0}, count - kEnd}) {
      const uint32_t out = maker.value(ValueKind::output, DType::i32, {fixed(kEnd)});
      maker.op("slice", {tensor(each), integer(0), integer(start), integer(start + kEnd), integer(1)}, {out});
    }
  }
  return maker;
}

struct Context {
  std::shared_ptr<Device> device;
  Sizes sizes;
  bool small, cpu;
};

std::string nearly_full(const Context& c) {
  if (c.cpu) throw Skip{"a CPU driver's memory is the host's"};
  const uint64_t most = c.device->info().heap_bytes / 10 * 9;
  std::vector<Buffer> ballast;
  try {
    while (ballast.size() * kGiB < most)
      ballast.push_back(c.device->memory().buffer(kGiB, MemoryKind::device, "ballast"));
  } catch (const Error&) {  // others use the device, too
    require(ballast.size() > 2, "not even two GiB are free");
    ballast.resize(ballast.size() - 2);
  }
  const uint64_t used = ballast.size() * kGiB;
  Small small(c.device);
  small.run_once();
  const uint64_t left = c.device->info().heap_bytes - used, each = static_cast<uint64_t>(c.sizes.far_count) * 4;
  std::string got = "nothing";
  try {
    load(c.device, many_tensors(c.sizes.far_count, static_cast<int>(left / each) + 2))->session()->run(0, {});
  } catch (const Error& error) {
    got = name(error.code());
  }
  require(got == "OutOfDeviceMemory" || got == "LimitExceeded", "more than is left gave " + got);
  small.run_once();
  ballast.clear();
  small.run_once();
  return format("%llu GiB in use; more than is left: %s", static_cast<unsigned long long>(used / kGiB), got.c_str());
}

std::string one_is_endless(const Context& c) {
  const auto limit_ns = static_cast<uint64_t>(c.sizes.limit_s * 1e9);
  load(c.device, chain(c.sizes.chain_n, 2))->session()->run(0, {});  // compiling a kernel is not cut off
  const auto session = load(c.device, chain(c.sizes.chain_n))->session({.timeout_ns = limit_ns});
  Small small(c.device);
  small.run_once();
  std::atomic<bool> done = false;
  double took = 0;
  std::string why;
  std::thread other([&] {
    try {
      took = time_out(*session, c.sizes.limit_s);
    } catch (const Wrong& wrong) {
      why = wrong.why;
    }
    done = true;
  });
  try {
    while (!done) small.run_once();
  } catch (const std::exception& error) {
    why = error.what();
  } catch (const Wrong& wrong) {
    why = wrong.why;
  }
  other.join();
  require(why.empty(), why);
  require(small.runs() > 2, "the other session did not run meanwhile");
  small.run_once();
  return format("ended after %.2f s, limit %.1f s; %d right runs of another session", took, c.sizes.limit_s,
                small.runs());
}

std::string two_time_out(const Context& c) {
  const auto limit_ns = static_cast<uint64_t>(c.sizes.limit_s * 1e9);
  const auto model = load(c.device, chain(c.sizes.chain_n));
  double took[2] = {};
  std::string why[2];
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      try {
        took[i] = time_out(*model->session({.timeout_ns = limit_ns}), c.sizes.limit_s);
      } catch (const std::exception& error) {
        why[i] = error.what();
      } catch (const Wrong& wrong) {
        why[i] = wrong.why;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  require(why[0].empty() && why[1].empty(), why[0] + " / " + why[1]);
  require(!c.device->is_lost(), "the device is lost");
  Small(c.device).run_once();
  return format("ended after %.2f s and %.2f s, limit %.1f s", took[0], took[1], c.sizes.limit_s);
}

// As large as the device allocates at once, 7.5 GiB at most: NVIDIA's drivers allocate up to 4 GiB less 2 MiB.
std::string large_arena(const Context& c) {
  constexpr int kTensors = 5;
  const auto most = static_cast<int64_t>(c.device->features().max_allocation_bytes / (4 * kTensors)) - (1 << 20);
  const int64_t count = std::min(c.sizes.far_count, most);
  const auto session = load(c.device, many_tensors(count, kTensors))->session();
  session->run(0, {});
  const uint64_t arena = session->memory().arena;
  require(c.small || arena > 3 * kGiB, format("the arena has only %llu bytes", static_cast<unsigned long long>(arena)));
  for (int i = 0; i < 2 * kTensors; ++i) {
    const std::vector<int32_t> got = output<int32_t>(*session, static_cast<uint32_t>(i));
    const int64_t start = (i % 2 == 0 ? 0 : count - kEnd) + i / 2;
    for (int64_t j = 0; j < kEnd; ++j)
      require(got[static_cast<size_t>(j)] == start + j, format("tensor %d is wrong at its end %d", i / 2, i % 2));
  }
  return format("an arena of %.1f GiB", static_cast<double>(arena) / kGiB);
}

std::string large_weight(const Context& c) {
  constexpr int64_t kColumns = 2048;
  const auto rows = static_cast<size_t>(c.sizes.weight_rows);
  std::vector<uint16_t> weight(rows * kColumns);
  for (size_t row = 0; row < rows; ++row) weight[row * kColumns + row % kColumns] = kHalves[row % 3];
  Maker maker;
  const uint32_t x = maker.value(ValueKind::input, DType::f16, {fixed(1), fixed(kColumns)}, -1, "x");
  const uint32_t w = maker.constant(DType::f16, {fixed(c.sizes.weight_rows), fixed(kColumns)}, weight);
  const uint32_t y = maker.value(ValueKind::output, DType::f16, {fixed(1), fixed(c.sizes.weight_rows)});
  maker.op("linear", {tensor(x), tensor(w), {}, integer(0), {}}, {y});
  const auto session = load(c.device, maker)->session();
  session->run(0, std::vector{view(DType::f16, std::vector<uint16_t>(kColumns, kHalves[0]), {1, kColumns})});
  const std::vector<uint16_t> got = output<uint16_t>(*session, 0);
  for (size_t row = 0; row < rows; ++row)
    require(got[row] == kHalves[row % 3], format("row %zu of %zu is wrong: %#x", row, rows, got[row]));
  return format("a weight of %.1f GiB", static_cast<double>(weight.size() * 2) / kGiB);
}

// One dispatch that cannot be cut: an invocation adds up all positions. The device may be lost; the next one is right.
std::string endless_dispatch(const Context& c) {
  if (c.cpu && !c.small) throw Skip{"a CPU driver is waited for"};
  const int64_t count = c.sizes.serial_count;
  Maker maker;
  const uint32_t self = maker.value(ValueKind::scratch, DType::f32, {fixed(1), fixed(1)});
  const uint32_t index = maker.value(ValueKind::scratch, DType::i32, {fixed(count)});
  const uint32_t values = maker.value(ValueKind::scratch, DType::f32, {fixed(count), fixed(1)});
  const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(1), fixed(1)});
  maker.op("full", {real(0), list({1, 1})}, {self});
  maker.op("full", {real(0), list({count})}, {index});
  maker.op("full", {real(1), list({count, 1})}, {values});
  maker.op("index_add", {tensor(self), tensor(index), tensor(values), integer(0)}, {out});
  std::string got = "it ended";
  const double took = seconds_of([&] {
    try {
      load(c.device, maker)->session({.timeout_ns = 500'000'000})->run(0, {});
    } catch (const Error& error) {
      got = name(error.code());
    }
  });
  require(c.small || got == "Timeout" || got == "DeviceLost", "after " + format("%.1f s: ", took) + got);
  const double next = seconds_of([] {
    const std::shared_ptr<Device> device = open_device();
    Small(device).run_once();
  });
  return format("%s after %.1f s; right again %.1f s later", got.c_str(), took, next);
}

int run_all(bool small) {
  const std::pair<const char*, std::string (*)(const Context&)> parts[] = {
      {"memory nearly full", nearly_full},     {"a run without end beside another session", one_is_endless},
      {"two time-outs at once", two_time_out}, {"the largest arena", large_arena},
      {"a weight of 4 GiB", large_weight},     {"a dispatch without end", endless_dispatch},
  };
  int counts[3] = {};
  for (const auto& [what, part] : parts) {
    int result = 1;
    std::string text;
    try {
      const auto device = open_device();
      const bool cpu = device->info().kind == "cpu";
      if (cpu && !small) throw Skip{"it takes a CPU driver too long; --small tries it"};
      text = part({device, small ? kSmall : kLarge, small, cpu});
      result = 0;
    } catch (const Skip& skip) {
      result = 2, text = skip.why;
    } catch (const Wrong& wrong) {
      text = wrong.why;
    } catch (const Error& error) {
      text = std::string(name(error.code())) + " at " + error.path() + ": " + error.what();
    } catch (const std::exception& error) {
      text = error.what();
    }
    constexpr const char* kWords[] = {"passed", "FAILED", "skipped"};
    ++counts[result];
    std::printf("%s: %s: %s\n", kWords[result], what, text.c_str());
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed, %d skipped\n", counts[0], counts[1], counts[2]);
  return counts[1] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace pumice::engine::test

int main(int count, char** words) {
  const bool small = count == 2 && std::string_view(words[1]) == "--small";
  if (count > 1 && !small) {
    std::fprintf(stderr, "usage: %s [--small]\n", words[0]);
    return 2;
  }
  return pumice::engine::test::run_all(small);
}
