// SPDX-License-Identifier: Apache-2.0
// Inputs that another thread changes during the copy.
#include "graph/convert.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace pumice::engine {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

// Bytes of which none may be read past the end: a page without access follows.
struct Guarded {
  explicit Guarded(size_t bytes) : page(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    base = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(static_cast<char*>(base) + page, page, PROT_NONE) != 0) std::abort();
    data = static_cast<std::byte*>(base) + page - bytes;
  }
  ~Guarded() { munmap(base, 2 * page); }
  Guarded(const Guarded&) = delete;
  size_t page;
  void* base;
  std::byte* data;
};

// Copies while the last byte changes between `good` and `bad`; the copy must be bad only where that is reported.
void race(size_t bytes, std::byte good, std::byte bad, const std::function<void(const std::byte* in)>& copy) {
  if (kThreadSanitizer) GTEST_SKIP() << "the race is the test";
  const Guarded input(bytes);
  std::memset(input.data, 0, bytes);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    volatile std::byte* last = input.data + bytes - 1;
    while (!stop) {
      *last = bad;
      *last = good;
    }
  });
  for (int i = 0; i < 200'000; ++i) copy(input.data);
  stop = true;
  other.join();
}

TEST(Convert, AnIntegerThatChangesIsReportedOrRight) {
  constexpr size_t kCount = 9;
  std::vector<std::byte> out(kCount * 4);
  race(kCount * 8, std::byte{0}, std::byte{1}, [&](const std::byte* in) {
    const uint64_t position = narrow_i64(out.data(), in, kCount);
    ASSERT_TRUE(position == kNoPosition || position == kCount - 1) << position;
  });
}

TEST(Convert, ABoolThatChangesIsReportedOrRight) {
  constexpr size_t kCount = 37;
  std::vector<std::byte> out(kCount);
  race(kCount, std::byte{1}, std::byte{2}, [&](const std::byte* in) {
    const uint64_t position = copy_bool(out.data(), in, kCount);
    ASSERT_TRUE(position == kNoPosition || position == kCount - 1) << position;
    ASSERT_EQ(position == kNoPosition, out[kCount - 1] != std::byte{2});
  });
}

}  // namespace
}  // namespace pumice::engine
