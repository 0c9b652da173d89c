// SPDX-License-Identifier: Apache-2.0
// The main of every test program: tests run under Vulkan's validation layer, core and synchronization checks, and a
// message that a test did not provoke fails it. PUMICE_VALIDATE=1: the layer must be there; 0: without it; not set:
// with it where it is installed.
#include <atomic>
#include <cstdio>
#include <string_view>

#include "test/support/validation.h"
#include "test/vulkan/gpu.h"

namespace pumice::engine::test {
namespace {

std::atomic<uint64_t> provoked{0};

struct Silence : testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    before = validation_messages();
    provoked = 0;
  }
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_EQ(validation_messages() - before, provoked.load())
        << "messages of the validation layer; they are in the log";
  }
  uint64_t before = 0;
};

// Silence means something only where a mistake is reported: two dispatches that race must be.
void control() {
  const Messages messages;
  const Provoked race;
  run_two(open(), false);
  if (race.count() == 0)
    throw Error(Code::Internal, Stage::device, "PUMICE_VALIDATE", "a planted race is not reported");
}

// The layer itself leaks a block at its end, and ThreadSanitizer is wrong about its operator delete: sanitized builds
// look at our code only.
#if defined(PUMICE_SANITIZED)
constexpr bool kPossible = false;
#else
constexpr bool kPossible = true;
#endif

// False when the layer must be there and is not.
bool start_validation() {
  const char* asked = std::getenv("PUMICE_VALIDATE");
  const bool must = asked != nullptr && *asked != 0;
  if (!kPossible) unsetenv("PUMICE_VALIDATE");
  if (!kPossible || (must && std::string_view(asked) == "0")) return true;
  setenv("PUMICE_VALIDATE", "1", 1);
  try {
    control();
  } catch (const Error& error) {
    std::fprintf(stderr, "no validation layer: %s\n", error.what());
    if (must) return false;
    unsetenv("PUMICE_VALIDATE");
  }
  set_vulkan_hook({});  // the next device gets an instance of its own
  return true;
}

}  // namespace

Provoked::Provoked() : before_(validation_messages()) {}
Provoked::~Provoked() {
  provoked += count();
}
uint64_t Provoked::count() const {
  return validation_messages() - before_;
}

}  // namespace pumice::engine::test

int main(int count, char** words) {
  testing::InitGoogleMock(&count, words);
  if (!testing::GTEST_FLAG(list_tests) && !pumice::engine::test::start_validation()) return 1;
  testing::UnitTest::GetInstance()->listeners().Append(new pumice::engine::test::Silence);
  return RUN_ALL_TESTS();
}
