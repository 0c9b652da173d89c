// SPDX-License-Identifier: Apache-2.0
// Launches of kernels in which a workgroup has whole rows of a tensor.
#pragma once

#include "ops/shared/args.h"

namespace pumice::engine {

// A workgroup for every spec[1] rows, so many that their elements are whole quads (no two workgroups then write one
// word).
inline void launch_rows(Launch& launch, uint32_t rows, uint32_t width) {
  const uint32_t together = width % 4 == 0 ? 1 : width % 2 == 0 ? 2 : 4;
  // A few quads a lane: the fewer lanes meet, the fewer barriers, and 32 are one subgroup on many devices.
  const uint32_t lanes = width > 1024 ? 128 : width > 512 ? 64 : 32;
  launch.over(uint64_t{(rows + together - 1) / together} * lanes, lanes);
  launch.spec.push_back(together);
}

}  // namespace pumice::engine
