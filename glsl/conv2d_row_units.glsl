// SPDX-License-Identifier: Apache-2.0
// The power of two that an fp32 row of a weight is counted in (conv/fragments.glslh): units[row] times a number in [1, 2) is its
// largest finite element, as far as exponents reach. A workgroup has a row.
// Bindings: 0 units, 1 weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/reduce.glslh"
#include "math/split.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { float units_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float weight_[]; };

layout(push_constant) uniform Params {
  uint rows;
  uint k;
} params;

void main() {
  const uint row = group();
  if (row >= params.rows) return;  // the whole workgroup
  int size = 0;
  for (uint k = lane(); k < params.k; k += LANES) size = max(size, size_of(weight_[row * params.k + k]));
  const int up = row_power(workgroup_max(size));
  if (lane() == 0u) units_[row] = power_of_2(14 - up);
}
