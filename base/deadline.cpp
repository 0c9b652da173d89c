// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"

#include <utility>

#include "base/process_end.h"

namespace pumice::engine {

Deadline::Deadline(double seconds, std::function<void()> poll) : seconds_(seconds), poll_(std::move(poll)) {
  constexpr double kNever = 1e9;  // 30 years; more could overflow the clock
  if (seconds < kNever)
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Deadline::require(Stage stage, const char* doing) const {
  refuse_at_exit();
  if (poll_) poll_();
  if (Clock::now() < end_) return;
  fail(Code::Timeout, stage, "max_seconds",
       "stopped before %s: the file took longer than the limit of %g s (max_seconds)", doing, seconds_);
}

}  // namespace pumice::engine
