// SPDX-License-Identifier: Apache-2.0
// The kernels of linear layers that multiply 8-bit integers, and what each needs. Pure functions.
#pragma once

#include <string>

#include "ops/linear/kernels.h"

namespace pumice::engine {

// Why such a kernel cannot compute a shape on that device, as the end of "it ..."; empty when it can.
std::string int8_unsupported_reason(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Invocations of a workgroup.
uint32_t dot_gemv_lanes(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Tiles of weights that a lane of it prefetches.
uint32_t dot_gemv_depth(const Features& features);
uint32_t matrix_int8_lanes(const LinearKernel& kernel, const Features& features);
// Bytes of shared memory for tiles and sums.
uint32_t matrix_int8_shared(const LinearKernel& kernel, const Features& features);

}  // namespace pumice::engine
