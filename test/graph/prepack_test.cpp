// SPDX-License-Identifier: Apache-2.0
// Constants on the device: packed once, shared by programs, unpacked ones freed, batches, external constants, and no
// leaks after errors.
#include <map>
#include <thread>

#include "test/graph/make.h"
#include "test/vulkan/faults.h"

namespace pumice::engine::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kN = 8, kK = 64;

// `count` linear layers with the same input; `tied`: with the same weight, too. Every element of a weight is 3, so
// out = 3 * step * sum(x).
Maker linears(size_t count, bool tied, int64_t n = kN, int64_t k = kK, float step = 0.5f) {
  Maker maker;
  const uint32_t x = maker.value(ValueKind::input, DType::f32, {fixed(1), fixed(k)}, -1, "x");
  std::vector<uint8_t> weight(static_cast<size_t>(n * k / 2), 0xbb);
  const std::vector<float> scale(static_cast<size_t>(n * k / 32), step);
  const uint32_t s = maker.constant(DType::f32, {fixed(n), fixed(k / 32)}, scale);
  uint32_t w = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || !tied) w = maker.constant(DType::i4, {fixed(n), fixed(k)}, weight);
    const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(1), fixed(n)});
    maker.op("linear_q4gsw", {tensor(x), tensor(w), tensor(s), {}, {}, integer(32), integer(0), {}}, {out});
  }
  return maker;
}

struct Used {
  uint64_t weights, device_bytes;
};

Used load_and_run(const Maker& maker, int64_t k = kK) {
  const auto device = open_device();
  const uint64_t before = device->memory().use().device_bytes;
  const Bytes file = maker.file();
  const auto model = pumice::engine::Model::load([&] { return device; }, file);
  const uint64_t after = device->memory().use().device_bytes;
  const auto session = model->session();
  const std::vector<float> x(static_cast<size_t>(k), 1.0f);
  session->run(0, std::vector{view(DType::f32, x, {1, k})});
  for (uint32_t o = 0; o < maker.model.program.methods[0].outputs.size(); ++o)
    EXPECT_THAT(output<float>(*session, o), Each(1.5f * static_cast<float>(k)));
  return {session->memory().weights, after - before};
}

TEST(Prepack, AConstantUsedTwiceIsPackedOnce) {  // W11
  const Used one = load_and_run(linears(1, true)), tied = load_and_run(linears(4, true)),
             own = load_and_run(linears(4, false));
  EXPECT_EQ(tied.weights, one.weights);
  EXPECT_GT(own.weights, one.weights);
}

TEST(Prepack, MethodsShareWeights) {
  Maker maker = linears(1, true);
  const uint64_t one = load_and_run(maker).weights;
  maker.model.program.methods.push_back(maker.method());
  maker.model.program.methods[1].name = "again";
  EXPECT_EQ(load_and_run(maker).weights, one);
}

TEST(Prepack, RawConstantsGoAlsoOverSeveralBatches) {
  const Used used = load_and_run(linears(3, false, 8192, 8192), 8192);  // 32 MiB each
  EXPECT_EQ(used.device_bytes, used.weights);
  EXPECT_LT(used.weights, uint64_t{120} << 20);
}

TEST(Prepack, ExternalConstantsAreAskedForByKey) {  // F22
  Maker maker = lookup();
  Constant& table = maker.model.program.constants[0];
  const Bytes data = maker.model.constants;
  table.external = true;
  maker.model.constants.clear();
  const Bytes file = maker.file();
  int asked = 0;
  const auto model = pumice::engine::Model::load(
      open_device, file, [&](std::string_view key) -> std::optional<std::span<const std::byte>> {
        EXPECT_EQ(key, "c0");
        ++asked;
        return data;
      });
  EXPECT_EQ(asked, 1);
  const auto session = model->session();
  session->run(0, std::vector{view<int64_t>(DType::i64, {3}, {1})});
  EXPECT_EQ(output<float>(*session, 0)[1], 7);
  Bytes other = data;
  other[3] ^= std::byte{1};
  EXPECT_EQ(error_of([&] {
              pumice::engine::Model::load(open_device, file,
                                          [&](auto) { return std::optional(std::span<const std::byte>(other)); });
            }).code(),
            Code::WeightsMismatch);
  EXPECT_EQ(error_of([&] { pumice::engine::Model::load(open_device, file); }).code(), Code::WeightsMismatch);
}

// A file whose constants are all external.
class Apart {
 public:
  explicit Apart(Maker maker) : data_(std::move(maker.model.constants)) {
    for (Constant& constant : maker.model.program.constants) {
      places_[constant.key] = {constant.offset, constant.size};
      constant.offset = 0;
      constant.external = true;
    }
    maker.model.constants.clear();
    file_ = maker.file();
  }
  std::shared_ptr<const pumice::engine::Model> load(const std::shared_ptr<Device>& device) const {
    const auto bytes = [this](std::string_view key) {
      const auto [offset, size] = places_.at(std::string(key));
      return std::optional(std::span(data_).subspan(offset, size));
    };
    return pumice::engine::Model::load([&] { return device; }, file_, bytes);
  }

 private:
  Bytes data_, file_;
  std::map<std::string, std::pair<uint64_t, uint64_t>> places_;
};

void expect_outputs(const pumice::engine::Model& model, float value) {
  const auto session = model.session();
  session->run(0, std::vector{view(DType::f32, std::vector<float>(1024, 1.0f), {1, 1024})});
  EXPECT_THAT(output<float>(*session, 0), Each(value));
}

TEST(Prepack, ProgramsShareEqualWeights) {
  const auto device = open_device();
  const auto used = [before = device->memory().use().device_bytes, &device] {
    return device->memory().use().device_bytes - before;
  };
  const Apart one(linears(1, true, 512, 1024)), two(linears(2, false, 512, 1024));
  const Apart other(linears(1, true, 512, 1024, 0.25f));
  auto first = one.load(device);
  const uint64_t bytes = used();
  EXPECT_GE(bytes, 512u * 1024 / 2);
  auto second = two.load(device);
  EXPECT_EQ(used(), bytes);
  const auto third = other.load(device);  // the same weight with other scales
  EXPECT_GT(used(), bytes);
  EXPECT_EQ(first->session()->memory().weights, bytes);
  first.reset();
  expect_outputs(*second, 1.5f * 1024);
  expect_outputs(*third, 0.75f * 1024);
  second.reset();
  EXPECT_LE(used(), bytes);
  expect_outputs(*one.load(device), 1.5f * 1024);
}

TEST(Prepack, LoadsAtOnceShare) {
  const auto device = open_device();
  const uint64_t before = device->memory().use().device_bytes;
  const Apart file(linears(1, true, 512, 1024));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) expect_outputs(*file.load(device), 1.5f * 1024);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->memory().use().device_bytes, before);
}

// Through staging buffers, as on a discrete GPU: memory that a submitted copy still writes is not freed before it is
// done. The validation layer reports it if it is, which fails this test.
TEST(Prepack, AFailedLoadWaitsForItsCopies) {
  const FaultHook hook;
  const Maker maker = linears(3, false, 2048, 4096);  // 4 MiB each, in more than one batch of uploads
  const Bytes file = maker.file();
  const auto load = [&] { pumice::engine::Model::load([] { return open("staged"); }, file)->session(); };
  faults().reset();
  load();
  set_vulkan_hook(install_faults);
  ASSERT_THAT(faults().alive(), testing::IsEmpty());
  const size_t calls = faults().calls;
  for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST}) {
    for (size_t i = 0; i < calls; i += result == VK_ERROR_DEVICE_LOST ? 4 : 1) {
      const Messages quiet;
      faults().reset();
      faults().fail_call = i;
      faults().result = result;
      std::string failed;
      try {
        load();
      } catch (const Error& error) {
        failed = error.what();
        EXPECT_NE(error.code(), Code::Internal) << failed;
      }
      set_vulkan_hook(install_faults);
      ASSERT_THAT(faults().alive(), testing::IsEmpty()) << "call " << i << " " << faults().failed << ": " << failed;
    }
  }
}

TEST(Prepack, ARefusedLoadLeavesNothing) {
  const auto device = open_device();
  const uint64_t before = device->memory().use().device_bytes;
  Maker maker;
  const uint32_t c = maker.constant<uint8_t>(DType::boolean, {fixed(4)}, {0, 1, 2, 1});
  const uint32_t x = maker.value(ValueKind::input, DType::f32, {fixed(4)}, -1, "x");
  const uint32_t out = maker.value(ValueKind::output, DType::f32, {fixed(4)});
  maker.op("where", {tensor(c), tensor(x), integer(0)}, {out});
  const Bytes file = maker.file();
  const Error error = error_of([&] { pumice::engine::Model::load([&] { return device; }, file); });
  EXPECT_EQ(error.path(), "constants[0]");
  EXPECT_THAT(error.what(), HasSubstr("element 2"));
  EXPECT_EQ(device->memory().use().device_bytes, before);
}

}  // namespace
}  // namespace pumice::engine::test
