// SPDX-License-Identifier: Apache-2.0
// out[t, n] = sum_j in[t, j, n] * factors[t, j], in order of j in fp32: the results of a row's experts as one. An invocation makes a
// vec4 group.
// Bindings: 0 out, 1 in, 2 factors.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(set = 0, binding = 2) readonly buffer Factors { WORD(f32) factors_[]; };
layout(push_constant) uniform Params {
  uint count;    // vec4 groups of the output
  uint columns;  // vec4 groups of a row
  uint experts;  // of a row
} params;

void main() {
  const uint i = item();
  if (i >= params.count) return;
  const uint t = i / params.columns, n = i - t * params.columns;
  vec4 sum = vec4(0.0);
  for (uint j = 0u; j < params.experts; ++j) {
    const uint row = t * params.experts + j;
    sum = fma(LOAD4(DTYPE, in_, row * params.columns + n), vec4(LOAD1(f32, factors_, row)), sum);
  }
  STORE4(DTYPE, out_, i, sum);
}
