// SPDX-License-Identifier: Apache-2.0
// Sizes of subgroups and workgroups that several operators share.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace pumice::engine {

// Sets the subgroup size of Features, with full subgroups, where the device can vary it.
void require_subgroups(Launch& launch);

// Whether a workgroup looks through a list of so many positions for one element together, not each invocation alone: no
// invocation then takes long, as dispatches can be cut only between workgroups.
constexpr bool search_together(int64_t positions) {
  return positions >= 1 << 16;
}
inline constexpr uint32_t kTogetherLanes = 128;

}  // namespace pumice::engine
