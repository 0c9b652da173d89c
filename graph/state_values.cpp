// SPDX-License-Identifier: Apache-2.0
#include "graph/state_values.h"

namespace pumice::engine {

void put_first_values(const Program& program, std::span<const StateInfo> infos, std::span<const Buffer> states,
                      const Weights& weights, Commands& commands) {
  for (size_t s = 0; s < states.size(); ++s) {
    if (!states[s]) continue;
    const Slice target{states[s].handle(), 0, states[s].bytes()};
    const int32_t constant = program.states[s].constant;
    if (constant < 0) {
      commands.fill(target, 0);
    } else {
      commands.copy(weights.constant(static_cast<uint32_t>(constant), infos[s].dtype).slice, target);
    }
  }
}

void put_seed(const Program& program, std::span<const Buffer> states, uint64_t seed, Commands& commands) {
  constexpr const char* kState = "pumice.random";  // python/pumice/passes/random_numbers.py adds it
  for (size_t s = 0; s < states.size(); ++s) {
    if (program.states[s].key != kState || !states[s] || states[s].bytes() < 8) continue;
    commands.fill({states[s].handle(), 0, 4}, static_cast<uint32_t>(seed));
    commands.fill({states[s].handle(), 4, 4}, static_cast<uint32_t>(seed >> 32));
    return;
  }
  fail(Code::WrongState, Stage::api, "seed", "the model draws no random numbers");
}

}  // namespace pumice::engine
