// SPDX-License-Identifier: Apache-2.0
// Threads that share the pieces of one loop. The uploader copies with it, as one core alone fills a fifth of a PCIe
// link.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pumice::engine {

class ThreadPool {
 public:
  explicit ThreadPool(size_t max_threads) : max_threads_(max_threads) {}
  ~ThreadPool();
  // Calls work(first, count) over pieces of [0, total), on this thread and the others; returns when all are done, or
  // throws what a piece threw. Threads start at the first call with more than one piece.
  void run(size_t total, size_t piece, const std::function<void(size_t first, size_t count)>& work);

 private:
  void start();
  void take_pieces(std::unique_lock<std::mutex>& lock);

  const size_t max_threads_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable more_, done_;
  const std::function<void(size_t, size_t)>* work_ = nullptr;
  size_t next_ = 0, total_ = 0, piece_ = 1, busy_ = 0;
  std::exception_ptr error_;
  bool stop_ = false;
};

// least = min(least, value), from several threads.
inline void lower_to(std::atomic<size_t>& least, size_t value) {
  for (size_t seen = least; value < seen && !least.compare_exchange_weak(seen, value);) {
  }
}

}  // namespace pumice::engine
