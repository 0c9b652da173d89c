// SPDX-License-Identifier: Apache-2.0
// An operator call on a device: whether all runs give the same bits, and what fp64 and the portable kernel give.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/one_call.h"

namespace pumice::engine {

struct Trial {
  std::shared_ptr<Device> device;
  const ExternalData& external;
  std::shared_ptr<ConstantFacts> facts;
  Features features;                          // by which the kernel is chosen
  bool portable;                              // its kernels are: then nothing else is there to compare with
  std::chrono::steady_clock::time_point end;  // from then on four replays are enough
};

// What is wrong; "": nothing. Empty where the constants of the call make no numbers that tell anything.
std::optional<std::string> find_wrong(const OneCall& call, const Trial& trial);

}  // namespace pumice::engine
