// SPDX-License-Identifier: Apache-2.0
// The triangle of the last two dimensions on or above (UPPER), or on or below, a diagonal; zero elsewhere. One invocation computes
// a vec4 group.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(constant_id = 1) const bool UPPER = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(BITS) in_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint rows;
  uint columns;
  int diagonal;
} params;

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  uvec4 v = LOAD4(BITS, in_, q);
  for (uint k = 0u; k < 4u; ++k) {
    uint rest = 4u * q + k;
    const int column = int(take(rest, params.columns));
    const int above = column - int(take(rest, params.rows));
    if (UPPER ? above < params.diagonal : above > params.diagonal) v[k] = 0u;
  }
  STORE4(BITS, out_, q, v);
}
