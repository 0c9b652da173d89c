// SPDX-License-Identifier: Apache-2.0
// How a GEMV's workgroup is divided.
#pragma once

#include "ops/linear/kernels.h"

namespace pumice::engine {

// Invocations of a GEMV's workgroup for m rows of x and a weight [n, k]; the least of them, where workgroups are many;
// and the tiles of weights that a lane prefetches; `whole_ahead`: as gemv_whole_ahead() says.
uint32_t gemv_lanes(const LinearKernel& kernel, int64_t m, int64_t n, int64_t k, const Features& features);
uint32_t gemv_least_lanes(const LinearKernel& kernel, int64_t k, const Features& features);
uint32_t gemv_depth(const LinearKernel& kernel, bool whole_ahead, const Features& features);
// Whether each of these prefetched tiles is so with all its vectors.
bool gemv_whole_ahead(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Shared memory of a kernel whose columns share rows of x.
uint64_t shared_rows_bytes(const LinearKernel& kernel, int64_t k, const Features& features);
// Of linear_gemv_row_fragments.glsl: how a weight [n, k] is divided, and its shared memory.
struct RowWorkgroup {
  uint32_t panels, slots;  // row panels of a workgroup at once, subgroups of each
  uint32_t depth;          // pairs of tiles that a subgroup has in flight
  uint32_t workgroups;     // of a row of x
};
RowWorkgroup gemv_row_workgroup(const LinearKernel& kernel, int64_t n, int64_t k, WeightType weight, bool gated,
                                const Features& features);
uint64_t gemv_row_shared_bytes(const LinearKernel& kernel, int64_t k, const Features& features);

}  // namespace pumice::engine
