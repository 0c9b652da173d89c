// SPDX-License-Identifier: Apache-2.0
// Cases of 2D convolutions: x [b, c, h, w], weight [o, c / g * k * k], square binding_ranges. Of a case, m is b, n is
// o, and group is g.
#pragma once

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

struct ConvScheme {
  std::string_view op;
  bool quantized;  // the weight is i8, a scale (and maybe a zero point) for each output channel
  bool x_bytes = false, out_bytes = false;
};

std::unique_ptr<Problem> make_conv(const ConvScheme& scheme, const Case& c, uint64_t seed);
std::string refuse_conv(const ConvScheme& scheme, const Case& c);
ConvFacts conv_facts(const ConvScheme& scheme, const Case& c);

}  // namespace pumice::engine::kernel_bench
