// SPDX-License-Identifier: Apache-2.0
// Operators that only kernel_bench has: plain kernels to compare the engine's kernels with. They are not in the
// engine's table of operators, so no file can call them.
#pragma once

#include "ops/op.h"
#include "tools/kernel_bench/case.h"

namespace pumice::engine::kernel_bench {

std::span<const Op> baselines();
// Why linear_q4gsw_plain cannot run a case of linear_q4gsw, as the end of "it ..."; empty when it can.
std::string plain_unsupported_reason(const Case& c, const Features& features);

}  // namespace pumice::engine::kernel_bench
