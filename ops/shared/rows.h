// SPDX-License-Identifier: Apache-2.0
// Launches of kernels in which a workgroup has whole rows of a tensor.
#pragma once

#include "ops/shared/args.h"

namespace pumice::engine {

// A few vec4 groups for each lane: fewer lanes need fewer barriers, and 32 lanes are one subgroup on many devices.
inline uint32_t lanes_of_row(uint32_t width) {
  return width > 1024 ? 128 : width > 512 ? 64 : 32;
}

// A workgroup for every spec[1] rows: as many rows as make whole vec4 groups, so that no two workgroups write one word.
inline void launch_rows(Launch& launch, uint32_t rows, uint32_t width, uint32_t lanes) {
  const uint32_t together = width % 4 == 0 ? 1 : width % 2 == 0 ? 2 : 4;
  launch.over(uint64_t{(rows + together - 1) / together} * lanes, lanes);
  launch.spec.push_back(together);
}

}  // namespace pumice::engine
