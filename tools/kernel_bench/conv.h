// SPDX-License-Identifier: Apache-2.0
// Cases of 2D convolutions: x [b, c, h, w], weight [o, c / g * k * k], square kernels. In a Case m is b, n is
// o, and group is g.
#pragma once

#include "ops/conv/conv_scheme.h"
#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

std::unique_ptr<CaseData> make_conv(const ConvScheme& scheme, const Case& c, uint64_t seed);
std::string refuse_conv(const ConvScheme& scheme, const Case& c);
ConvFacts conv_facts(const ConvScheme& scheme, const Case& c);

}  // namespace pumice::engine::kernel_bench
