// SPDX-License-Identifier: Apache-2.0
// Times work that is recorded many times into one command buffer, with timestamps of the device.
#pragma once

#include <cmath>
#include <functional>

#include "tools/kernel_bench/stats.h"
#include "vulkan/command.h"

namespace pumice::engine::kernel_bench {

struct Timing {
  Spread us;         // of one replay, in microseconds; spread over submits
  Spread cpu_us;     // processor time of one replay, of all threads of this process, for CPU drivers
  uint32_t replays;  // in a submit
  size_t submits;
};

struct TimerOptions {
  double warm_seconds, seconds;
  uint32_t least_replays = 1;  // in a submit, unless it takes too long: as many as there are slots
  bool barrier = true;         // between replays
  double most_us = INFINITY;   // of the first replay; what takes longer is not timed
};

// A number of replays in one command buffer, warmed up, to be submitted as often as wanted.
class Replays {
 public:
  // `dispatch(commands, i)` records replay i.
  Replays(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
          const TimerOptions& options);
  struct Sample {
    double us, cpu_us;  // of one replay: by the device's clock, and of the processor
  };
  Sample submit();
  uint32_t count() const { return count_; }  // 0: the first one took more than most_us

 private:
  std::shared_ptr<Device> device_;
  Commands commands_;
  uint32_t count_ = 0;
};

Timing time(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
            const TimerOptions& options);

}  // namespace pumice::engine::kernel_bench
