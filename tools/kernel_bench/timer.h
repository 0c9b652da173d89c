// SPDX-License-Identifier: Apache-2.0
// Times something that is recorded many times into one command buffer, with the device's own clock.
#pragma once

#include <functional>

#include "tools/kernel_bench/stats.h"
#include "vulkan/command.h"

namespace pumice::engine::kernel_bench {

struct Timing {
  Spread us;         // of one replay, over submits
  double cpu_us;     // processor time of one replay, this process's threads; of use on CPU drivers
  uint32_t replays;  // of a submit
  size_t submits;
};

struct TimerOptions {
  double warm_seconds, seconds;
  uint32_t least_replays = 1;  // of a submit, where that is not too long: so many that all slots are visited
  bool barrier = true;         // between replays
};

// `dispatch(commands, i)` records replay i.
Timing time(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
            const TimerOptions& options);

}  // namespace pumice::engine::kernel_bench
