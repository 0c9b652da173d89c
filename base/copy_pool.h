// SPDX-License-Identifier: Apache-2.0
// A few threads that copy together: one core alone fills a fifth of a PCIe link.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pumice::engine {

class CopyPool {
 public:
  explicit CopyPool(size_t max_threads) : max_threads_(max_threads) {}
  ~CopyPool();
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

}  // namespace pumice::engine
