// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: the run under way is cancelled, and the exit code is 130.
#pragma once

#include <functional>

#include "pumice/pumice.hpp"

namespace tool {

constexpr int kInterrupted = 130;

// Before any other thread is started. Where SIGINT is ignored (a job in the background) it stays so. The process ends
// at once where no session runs, and else after its run was cancelled, at the latest in 1.8 s.
void see_interrupts();
bool is_interrupted();

// During its lifetime, Ctrl-C calls `say` once, on a thread of its own, right before the process ends.
class AtInterrupt {
 public:
  explicit AtInterrupt(std::function<void()> say);
  ~AtInterrupt();
  AtInterrupt(const AtInterrupt&) = delete;
};

// During its lifetime, Ctrl-C cancels this session's runs.
class Interruptible {
 public:
  explicit Interruptible(const pumice::Session& session);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
};

}  // namespace tool
