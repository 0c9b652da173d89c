// SPDX-License-Identifier: Apache-2.0
// Cases of quantize: x[m, k] to i8 by a given scale and zero point for each row. Of a case m, k, dtype and values
// count.
#pragma once

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

std::unique_ptr<Problem> make_quantize(const Case& c, uint64_t seed);
std::string refuse_quantize(const Case& c);

}  // namespace pumice::engine::kernel_bench
