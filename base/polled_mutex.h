// SPDX-License-Identifier: Apache-2.0
// A mutex for work that may take long.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace pumice::engine {

class PolledMutex {
 public:
  class Lock {
   public:
    // Waits while another thread has it, and calls `poll` about twenty times a second: what that throws ends the wait.
    // The thread that has it, which would wait for ever, gets Busy with the text `busy`.
    template <class Poll>
    Lock(PolledMutex& mutex, const Poll& poll, const char* busy) : mutex_(mutex) {
      if (mutex.inside_ == std::this_thread::get_id()) fail(Code::Busy, Stage::api, "", "%s", busy);
      while (!wait(mutex.mutex_, std::chrono::milliseconds(50))) poll();
      mutex.inside_ = std::this_thread::get_id();
    }
    ~Lock() {
      mutex_.inside_ = std::thread::id();
      mutex_.mutex_.unlock();
    }
    Lock(const Lock&) = delete;

   private:
    static bool wait(std::timed_mutex& mutex, std::chrono::milliseconds time) {
#ifdef __SANITIZE_THREAD__  // which does not see locks that wait by the steady clock, before GCC 13
      return mutex.try_lock_until(std::chrono::system_clock::now() + time);
#else
      return mutex.try_lock_for(time);
#endif
    }
    PolledMutex& mutex_;
  };

 private:
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> inside_;  // the thread that holds the mutex
};

}  // namespace pumice::engine
