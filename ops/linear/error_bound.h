// SPDX-License-Identifier: Apache-2.0
// How exact a linear layer is.
#pragma once

#include "ops/linear/kernels.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine {

// The error bound of every linear: against fp64 of the same stored numbers, with S = sum|x w| + |bias|,
//   |err| <= u |y| + linear_error(kernel, shape) * S * L
// and by chance (ops/shared/sum_error.h)
//   |err| <= u |y| + linear_roundings(kernel, shape).by_chance(k) * (|sum| + sqrt(sum (x w)^2)) * L
// u: 2^-11 for f16 outputs, 2^-24 for f32; L = 1.13 after gelu and silu (their largest slope; they add 4e-7
// times |their input|), 1.5 after hardswish, else 1.
// A kernel that reads x split (glsl/linear_split.glsl) may be off by split_error(kernel, shape) * max|x| * sum|w| more:
// beside an element 2^27 times as large as it, an element of a row loses bits. So it is with fp32 weights, and by as
// much times sum|x| * max|w|.
SumRoundings linear_roundings(const LinearKernel& kernel, const LinearShape& shape);
double linear_error(const LinearKernel& kernel, const LinearShape& shape);
double split_error(const LinearKernel& kernel, const LinearShape& shape);

}  // namespace pumice::engine
