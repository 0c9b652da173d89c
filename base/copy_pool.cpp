// SPDX-License-Identifier: Apache-2.0
#include "base/copy_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace pumice::engine {

CopyPool::~CopyPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  more_.notify_all();
  for (std::thread& each : threads_) each.join();
}

void CopyPool::start() {
  const size_t wanted = std::min<size_t>(max_threads_, std::max(std::thread::hardware_concurrency(), 1u));
  try {
    threads_.reserve(wanted);
    while (threads_.size() + 1 < wanted) {
      threads_.emplace_back([this] {
        std::unique_lock lock(mutex_);
        while (true) {
          more_.wait(lock, [this] { return stop_ || next_ < total_; });
          if (stop_) return;
          take_pieces(lock);
        }
      });
    }
  } catch (const std::system_error&) {  // fewer threads, then
  }
}

void CopyPool::take_pieces(std::unique_lock<std::mutex>& lock) {
  ++busy_;
  while (next_ < total_) {
    const size_t first = next_;
    const size_t count = std::min(piece_, total_ - first);
    next_ += count;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*work_)(first, count);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      if (!error_) error_ = error;
      next_ = total_;
    }
  }
  if (--busy_ == 0) done_.notify_all();
}

void CopyPool::run(size_t total, size_t piece, const std::function<void(size_t, size_t)>& work) {
  if (total <= piece) {
    if (total > 0) work(0, total);
    return;
  }
  if (threads_.empty()) start();
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  total_ = total;
  piece_ = std::max<size_t>(piece, 1);
  error_ = nullptr;
  more_.notify_all();
  take_pieces(lock);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace pumice::engine
