// SPDX-License-Identifier: Apache-2.0
// out[row] = sum_k weight[row, k] of 8-bit integers. One invocation sums a row.
// Bindings: 0 out, 1 weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { int out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { WORD(i8) weight_[]; };

layout(push_constant) uniform Params {
  uint rows;
  uint k;
} params;

void main() {
  if (item() >= params.rows) return;
  int sum = 0;
  for (uint k = 0u; k < params.k; ++k) sum += LOAD1(i8, weight_, item() * params.k + k);
  out_[item()] = sum;
}
