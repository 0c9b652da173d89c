// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/workers.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pumice::engine::kernel_bench {

void in_threads(uint32_t jobs, size_t count,
                const std::function<void(uint32_t, size_t, const std::function<void(const std::string&)>&)>& body,
                const std::function<void(const std::string&)>& report) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> said;
  std::exception_ptr failure;
  size_t next = 0;
  const size_t threads = std::min<size_t>(std::max(jobs, 1u), count);
  size_t running = threads;
  const auto say = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    said.push_back(text);
    changed.notify_one();
  };
  const auto work = [&](uint32_t thread) {
    for (;;) {
      size_t i;
      {
        const std::lock_guard lock(mutex);
        if (failure || next == count) break;
        i = next++;
      }
      try {
        body(thread, i, say);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_one();
  };
  std::vector<std::jthread> workers;
  for (uint32_t i = 0; i < threads; ++i) workers.emplace_back(work, i);
  std::unique_lock lock(mutex);
  while (running > 0 || !said.empty()) {
    changed.wait(lock, [&] { return running == 0 || !said.empty(); });
    while (!said.empty()) {
      const std::string text = std::move(said.front());
      said.pop_front();
      lock.unlock();
      try {
        report(text);
      } catch (...) {
        lock.lock();
        if (!failure) failure = std::current_exception();
        said.clear();
        continue;
      }
      lock.lock();
    }
  }
  lock.unlock();
  workers.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace pumice::engine::kernel_bench
