// SPDX-License-Identifier: Apache-2.0
// The values of a session's states that no run makes: those of the file, and a seed.
#include "graph/execute.h"
#include "vulkan/command.h"

namespace pumice::engine {

void Session::seed(uint64_t seed) {
  constexpr const char* kState = "pumice.random";  // python/pumice/passes/random_numbers.py adds it
  const Lock lock(*this);
  for (size_t s = 0; s < states_.size(); ++s) {
    if (program_->states[s].key != kState || !states_[s] || states_[s].bytes() < 8) continue;
    Commands commands(device_);
    commands.begin();
    commands.fill({states_[s].handle(), 0, 4}, static_cast<uint32_t>(seed));
    commands.fill({states_[s].handle(), 4, 4}, static_cast<uint32_t>(seed >> 32));
    commands.end();
    device_->run(commands, timeout_ns_);
    return;
  }
  fail(Code::WrongState, Stage::api, "seed", "the model draws no random numbers");
}

void Session::reset_state() {
  Commands commands(device_);
  commands.begin();
  for (size_t s = 0; s < states_.size(); ++s) {
    if (!states_[s]) continue;
    const Slice target{states_[s].handle(), 0, states_[s].bytes()};
    const int32_t constant = program_->states[s].constant;
    if (constant < 0) {
      commands.fill(target, 0);
    } else {
      commands.copy(weights_->constant(static_cast<uint32_t>(constant), state_infos_[s].dtype).slice, target);
    }
  }
  commands.end();
  if (!states_.empty()) device_->run(commands, timeout_ns_);
  half_updated_ = false;
}

}  // namespace pumice::engine
