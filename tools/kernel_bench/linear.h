// SPDX-License-Identifier: Apache-2.0
// Cases of the linear family: out[m, n] = act(sum_k x[m, k] * w[n, k] + bias[n]).
#pragma once

#include "ops/linear/linear_scheme.h"
#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

std::unique_ptr<CaseData> make_linear(const LinearScheme& scheme, const Case& c, uint64_t seed);
std::string refuse_linear(const LinearScheme& scheme, const Case& c);
LinearShape linear_shape(const LinearScheme& scheme, const Case& c);

}  // namespace pumice::engine::kernel_bench
