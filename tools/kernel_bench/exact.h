// SPDX-License-Identifier: Apache-2.0
// Matrix products and their ends in fp64, what kernels are held to.
#pragma once

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

// Of the terms a b.
TermSums dot(const double* a, const double* b, size_t count);
// What a kernel with these roundings may be off; without any in the sum, they are of the sum and of the bias.
double sum_error(const SumRoundings& roundings, const Expected& e);
// act(sum + bias), an ACT_* of glsl/include/math/activation.glslh. `by_chance`: signs of terms are random.
Expected finished(TermSums sums, double bias, uint32_t act, bool by_chance);

}  // namespace pumice::engine::kernel_bench
