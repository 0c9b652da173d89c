// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a linear at which shape: the fastest known for it. Pure functions of sizes and features, tested
// without a GPU.
#pragma once

#include "ops/linear/kernels.h"

namespace pumice::engine {

// The kernel for a shape; always one that can run.
const LinearKernel& pick_linear(const LinearShape& shape, const Features& features);
// Of them, one of cooperative matrices in fp16 that suits the shape on any device; else null.
const LinearKernel* pick_matrix(const LinearShape& shape, const Features& features);
// The linear kernel that Features::kernel names, or null.
const LinearKernel* forced_linear(const Features& features);
// What Features::kernel names, else what was tuned (ops/linear/tuned.h), else the pick. Throws InvalidArgument when
// that kernel cannot compute the shape.
const LinearKernel& choose_linear(const LinearShape& shape, const Features& features);
// Whether that is what was tuned.
bool is_tuned(const LinearShape& shape, const Features& features);

// The kernel for the rows of x after the last whole tile of a kernel that multiplies matrices of floats, where they are
// so few that one more tile would be a waste; else null.
const LinearKernel* pick_matrix_tail(const LinearKernel& kernel, LinearShape shape, const Features& features);

// The tile for `batch` products of m x k and k x n by linear/gemm.glslh. `sums`: numbers that an output needs
// meanwhile; `more`: invocations hold much beside their sums.
Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features, uint32_t sums = 1, bool more = false);

}  // namespace pumice::engine
