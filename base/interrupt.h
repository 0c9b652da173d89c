// SPDX-License-Identifier: Apache-2.0
// What a thread asks while it waits for long: Python's Ctrl-C, and whether the process is ending.
#pragma once

#include <functional>
#include <utility>

#include "base/process_end.h"

namespace pumice::engine {

inline std::function<void()>& interrupt_check() {
  thread_local std::function<void()> check;
  return check;
}

// Calls what this thread's Interrupt has; what it throws ends the wait. Throws WrongState when the process is ending.
inline void check_interrupt() {
  refuse_at_exit();
  if (interrupt_check()) interrupt_check()();
}

// During its lifetime, waits of this thread call `check` about twenty times a second.
class Interrupt {
 public:
  explicit Interrupt(std::function<void()> check) : outer_(std::exchange(interrupt_check(), std::move(check))) {}
  ~Interrupt() { interrupt_check() = std::move(outer_); }
  Interrupt(const Interrupt&) = delete;

 private:
  std::function<void()> outer_;
};

}  // namespace pumice::engine
