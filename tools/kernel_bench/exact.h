// SPDX-License-Identifier: Apache-2.0
// Matrix products and their ends in fp64, what kernels are held to.
#pragma once

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

// sum a b and sum |a b|.
Expected dot(const double* a, const double* b, size_t count);
// act(e + bias), an ACT_* of glsl/include/math/activation.glslh.
Expected finished(Expected e, double bias, uint32_t act);

}  // namespace pumice::engine::kernel_bench
