// SPDX-License-Identifier: Apache-2.0
// Every Vulkan call in the life of a model fails with every error, once and from then on: a typed error or the right
// answer, nothing left behind, and the next life is right (ids D06-D08). PUMICE_LONG=1: all of them; else a sample.
#include <iostream>

#include "test/graph/make.h"
#include "test/vulkan/faults.h"

namespace pumice::engine::test {
namespace {

constexpr int64_t kN = 8, kK = 64;
constexpr VkResult kResults[] = {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_DEVICE_LOST,
                                 VK_ERROR_INITIALIZATION_FAILED, VK_TIMEOUT};

// A linear layer whose weight is packed, and a counter: y = 96 for an x of ones, f32[s, 64]; count += 1.
Bytes file() {
  Maker maker;
  maker.dynamic("s", 1, 100, 2);
  const std::vector<SymInt> one{fixed(1)};
  const uint32_t start = maker.constant<int64_t>(DType::i64, one, {10});
  maker.model.program.states = {{"count", maker.method().values[start].ref}};
  maker.method().values.clear();
  const uint32_t x = maker.value(ValueKind::input, DType::f32, {expr(0), fixed(kK)}, -1, "x");
  const uint32_t w = maker.constant(DType::i4, {fixed(kN), fixed(kK)}, std::vector<uint8_t>(kN * kK / 2, 0xbb));
  const uint32_t scale = maker.constant(DType::f32, {fixed(kN), fixed(kK / 32)}, std::vector<float>(kN * kK / 32, 0.5));
  const uint32_t y = maker.value(ValueKind::output, DType::f32, {expr(0), fixed(kN)});
  maker.op("linear_q4gsw", {tensor(x), tensor(w), tensor(scale), {}, {}, integer(32), integer(0), {}}, {y});
  const uint32_t old = maker.value(ValueKind::state, DType::i64, one, 0);
  const uint32_t next = maker.value(ValueKind::output, DType::i64, one);
  maker.op("add", {tensor(old), integer(1), real(1)}, {next});
  maker.method().updates = {{old, next}};
  return maker.file();
}

void run(Session& session, int64_t rows, int64_t count) {
  const std::vector<float> x(static_cast<size_t>(rows * kK), 1.0f);
  session.run(0, std::vector{view(DType::f32, x, {rows, kK})});
  EXPECT_THAT(output<float>(session, 0), testing::Each(96.0f));
  EXPECT_EQ(output<int64_t>(session, 1), std::vector<int64_t>{count});
}

// By the specification, of the calls in a session. Others that do so are only passed on.
bool may_tell_a_loss(const std::string& function) {
  return function == "vkQueueSubmit" || function == "vkWaitForFences" || function == "vkGetFenceStatus" ||
         function == "vkGetQueryPoolResults";
}

// Load, run, resize, run again, reset, end. After an error in a session that is not lost, the same session goes on.
void life(const Bytes& bytes, const std::string& features) {
  const auto model = pumice::engine::Model::load([&] { return open(features); }, bytes);
  const auto session = model->session();
  int64_t count = 10;  // of runs that were right
  try {
    run(*session, 2, ++count);
    run(*session, 40, ++count);
    session->reset();
    run(*session, 40, count = 11);
    run(*session, 3, ++count);
  } catch (const Error& error) {
    const bool lost = model->device().is_lost();
    EXPECT_TRUE(lost || error.code() != Code::DeviceLost || !may_tell_a_loss(faults().failed)) << error.what();
    if (faults().from_then_on) throw;
    try {
      session->reset();
      run(*session, 5, 11);
      EXPECT_FALSE(lost);
    } catch (const Error& again) {
      EXPECT_TRUE(lost && again.code() == Code::DeviceLost) << again.what();
    }
    throw;
  }
}

// What came of one fault.
enum class End { right, error, gave_up };

End fault(const Bytes& bytes, const std::string& features) {
  const Messages quiet;
  End end = End::right;
  try {
    life(bytes, features);
  } catch (const Error& error) {
    end = End::error;
    EXPECT_NE(error.code(), Code::Internal) << error.what();
    EXPECT_THAT(error.what(), testing::ContainsRegex("(vk|vma)[A-Z]")) << "the call is named";
  }
  return end;
}

bool is_long() {
  const char* wanted = std::getenv("PUMICE_LONG");
  return wanted != nullptr && std::string_view(wanted) == "1";
}

struct Fault {
  size_t call;
  VkResult result;
  bool from_then_on;
};

// Waits that fail from then on leave devices behind that still work, and with them memory of the driver's threads.
#if defined(PUMICE_ADDRESS_SANITIZER)
constexpr bool kFromThenOn = false;
#else
constexpr bool kFromThenOn = true;
#endif

// Of a life that makes these calls. The sample has the last call of every function with one error, those that wait or
// submit with each.
std::vector<Fault> faults_of(const std::vector<std::string>& names) {
  std::vector<Fault> all;
  for (size_t call = 0; call < names.size(); ++call) {
    const bool is_last =
        std::find(names.begin() + static_cast<std::ptrdiff_t>(call) + 1, names.end(), names[call]) == names.end();
    const bool runs = names[call] == "vkQueueSubmit" || names[call] == "vkWaitForFences";
    for (size_t i = 0; i < std::size(kResults); ++i) {
      if (kResults[i] == VK_TIMEOUT && names[call] != "vkWaitForFences") continue;
      for (const bool from_then_on : {false, true}) {
        if (from_then_on && !kFromThenOn) continue;
        const bool in_sample = call % 4 == i && (!kFromThenOn || (call % 8 < 4) == from_then_on);
        if (is_long() || (is_last && (runs || in_sample))) all.push_back({call, kResults[i], from_then_on});
      }
    }
  }
  return all;
}

void sweep(const std::string& features) {
  const Bytes bytes = file();
  const FaultHook hook;
  faults().reset();
  faults().by_function.clear();
  life(bytes, features);
  set_vulkan_hook(install_faults);
  ASSERT_THAT(faults().alive(), testing::IsEmpty());
  const std::vector<std::string> names = faults().names;
  const std::vector<Fault> all = faults_of(names);
  std::map<End, int> ends;
  for (const auto& [call, result, from_then_on] : all) {
    faults().reset();
    faults().fail_call = call;
    faults().result = result;
    faults().from_then_on = from_then_on;
    SCOPED_TRACE(format("call %zu, %s, %s, %s", call, names[call].c_str(), name(result),
                        from_then_on ? "from then on" : "once"));
    End end = fault(bytes, features);
    const std::string failed = faults().failed;
    const bool may_leak = from_then_on && faults().unknown;
    faults().reset();
    set_vulkan_hook(install_faults);
    const auto alive = faults().alive();
    if (may_leak && alive.contains("Device")) {
      end = End::gave_up;
    } else {
      ASSERT_THAT(alive, testing::IsEmpty()) << failed;
    }
    ++ends[end];
    ASSERT_FALSE(testing::Test::HasFailure()) << failed;
  }
  life(bytes, features);
  std::cout << format("%zu calls; %zu faults in %zu functions: %d right all the same, %d errors, %d given up",
                      names.size(), all.size(), faults().by_function.size(), ends[End::right], ends[End::error],
                      ends[End::gave_up])
            << std::endl;
}

TEST(LifeFaults, UnifiedMemory) {
  sweep("");
}

TEST(LifeFaults, StagedMemory) {
  sweep("staged");
}

}  // namespace
}  // namespace pumice::engine::test
