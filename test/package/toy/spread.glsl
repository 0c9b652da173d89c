// SPDX-License-Identifier: Apache-2.0
// out[r] = scale * (max - min) of x[r, 0 .. width - 1]. An invocation computes four neighbouring rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "core/types.glslh"

layout(binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint width;
  float scale;
} params;

float spread(uint row) {
  const uint first = min(row, params.rows - 1u) * params.width;
  float low = LOAD1(DTYPE, x_, first), high = low;
  for (uint i = first + 1u; i < first + params.width; ++i) {
    const float x = LOAD1(DTYPE, x_, i);
    low = min(low, x);
    high = max(high, x);
  }
  return params.scale * (high - low);
}

void main() {
  const uint q = item();
  if (4u * q >= params.rows) return;
  const uint row = 4u * q;
  STORE4(DTYPE, out_, q, vec4(spread(row), spread(row + 1u), spread(row + 2u), spread(row + 3u)));
}
