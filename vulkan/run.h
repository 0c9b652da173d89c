// SPDX-License-Identifier: Apache-2.0
// One run of recorded commands, in as many submits as their parts and its length ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace pumice::engine {

class Commands;    // vulkan/command.h
class Queue;       // vulkan/queue.h
struct Recording;  // vulkan/queue.h

struct Run {
  uint64_t timeout_ns = 0;  // 0: a minute, ten on a CPU driver
  // How often the commands run, one after another; more than once where they were begun as repeated.
  uint32_t times = 1;
  uint32_t times_a_submit = ~0u;    // at most; where the commands have one part
  const Commands* first = nullptr;  // run once before them, in the first submit
  const Commands* last = nullptr;   // run once after them, in the last submit
  // Called between submits, and now and then while one is waited for. What it throws ends the run, see `began`.
  std::function<void()> poll = {};

  // Whether anything was submitted. After an error, what was submitted has come to its end, or the device is lost.
  bool began = false;
  // Nanoseconds that each part took, the shortest of `times`; those of one time where there is one part.
  std::vector<uint64_t> part_ns = {};
};

// Throws Timeout: nothing more is submitted then, and what is under way gets a little longer; only when it does not
// come to its end the device counts as lost. DeviceLost (sticky), and what `poll` throws.
void run(Queue& queue, Recording& recording, Run& run);

}  // namespace pumice::engine
