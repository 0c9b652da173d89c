// SPDX-License-Identifier: Apache-2.0
// Sizes of subgroups that several operators share.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace pumice::engine {

// Sets the subgroup size of Features, with full subgroups, where the device can vary it.
void require_subgroups(Launch& launch);

}  // namespace pumice::engine
