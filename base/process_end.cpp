// SPDX-License-Identifier: Apache-2.0
#include "base/process_end.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace pumice::engine {
namespace {

constexpr std::chrono::seconds kLongest{2};
constexpr uint64_t kFirstCalls = 64;

std::atomic<bool> ending{false};
std::atomic<int> inside{0};        // calls, of all threads
thread_local int inside_here = 0;  // of this thread: exit() may be called from inside of one
std::atomic<uint64_t> ended{0};    // calls, since the first wait_at_exit()
std::atomic<pid_t> process{0};     // of wait_at_exit()
// Held by a thread that registers a handler, and during a fork: a child forked in the middle of std::atexit() would
// find the C library's lock taken for ever, and hang in exit().
constinit std::mutex registering;

void wait() {
  if (process != getpid()) return;
  ending = true;
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (inside > inside_here && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

void wait_at_exit() {
  const auto lock = [] { registering.lock(); };
  const auto unlock = [] { registering.unlock(); };
  static const bool kKnowsForks = pthread_atfork(lock, unlock, unlock) == 0;
  if (!kKnowsForks) return;  // no memory for that
  const std::lock_guard held(registering);
  process = getpid();
  // Handlers and destructors run in the reverse order of their registration; without memory for one more there is none.
  (void)std::atexit(wait);
}

void refuse_at_exit() {
  if (ending) fail(Code::WrongState, Stage::api, "", "the process is ending");
}

// Counted before it asks: the end begins before it counts, so one of the two sees the other.
Inside::Inside() {
  ++inside;
  ++inside_here;
  try {
    refuse_at_exit();
  } catch (...) {
    --inside_here;
    --inside;
    throw;
  }
}

Inside::~Inside() {
  if (inside_here == 1 && process != 0) {
    const uint64_t number = ++ended;
    if ((number <= kFirstCalls || std::has_single_bit(number)) && process == getpid()) wait_at_exit();
  }
  --inside_here;
  --inside;
}

}  // namespace pumice::engine
