// SPDX-License-Identifier: Apache-2.0
// When work on behalf of a file must end. It is asked between steps; a step under way is not cut off.
#pragma once

#include <chrono>
#include <functional>

#include "base/error.h"

namespace pumice::engine {

class Deadline {
 public:
  Deadline() = default;  // never
  // `poll` is asked, too: what it throws ends the work. Any thread that works may call it.
  explicit Deadline(double seconds, std::function<void()> poll = {});
  // Throws Timeout once the time is over, and WrongState when the process is ending. `doing`: what would come next,
  // "packing weights".
  void require(Stage stage, const char* doing) const;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_ = Clock::time_point::max();
  double seconds_ = 0;
  std::function<void()> poll_;
};

}  // namespace pumice::engine
