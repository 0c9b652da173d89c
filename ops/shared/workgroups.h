// SPDX-License-Identifier: Apache-2.0
// Sizes of dispatches and of subgroups that several operators share.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace pumice::engine {

// Sets the subgroup size of Features, with full subgroups, where the device can vary it.
void require_subgroups(Launch& launch);

// Workgroups counted along x, then y (group() of glsl/include/core/launch.glslh). Throws LimitExceeded when they are
// more than one dispatch takes.
void over_groups(Launch& launch, uint64_t groups, uint32_t lanes);

}  // namespace pumice::engine
