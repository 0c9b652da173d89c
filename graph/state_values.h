// SPDX-License-Identifier: Apache-2.0
// The values of a session's states that no run makes: those of the file, and a seed.
#pragma once

#include <span>

#include "graph/states.h"
#include "graph/weights.h"
#include "vulkan/command.h"

namespace pumice::engine {

// Records the first value of every state: of a constant, or zeros. `states`: a buffer for each of Program::states,
// empty where no method uses it.
void put_first_values(const Program& program, std::span<const StateInfo> infos, std::span<const Buffer> states,
                      const Weights& weights, Commands& commands);
// Records the seed of the random numbers. Throws WrongState where the program draws none.
void put_seed(const Program& program, std::span<const Buffer> states, uint64_t seed, Commands& commands);

}  // namespace pumice::engine
