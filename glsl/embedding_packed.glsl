// SPDX-License-Identifier: Apache-2.0
// out[i, :] = (weight[index[i], :] - zero) * scale from the layout of packed.glslh, which a tied linear layer shares. An index
// outside of 0 .. rows-1 is reported and reads row 0. fp32, one rounding for the product and one for the output's type.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8
#include "launch.glslh"
#include "types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#define STATUS_BINDING 1
#include "status.glslh"
layout(set = 0, binding = 2) readonly buffer Weight { uvec4 weight_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(set = 0, binding = 4) readonly buffer Scale { uint scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { uint zero_[]; };  // the scales again when all are zero
layout(push_constant) uniform Params {
  uint count;    // of out
  uint rows;     // of weight
  uint columns;
  uint tiles;    // of a strip
  uint groups;   // of a row
  uint call;
} params;

layout(constant_id = 1) const uint GROUP = 0u;  // columns; 0: the whole row
layout(constant_id = 2) const uint SCALE_F16 = 0u;
layout(constant_id = 3) const uint HAS_ZERO = 0u;
#include "packed.glslh"

uint row_of(uint position) {
  const int row = LOAD1(i32, index_, position);
  if (row >= 0 && uint(row) < params.rows) return uint(row);
  report_index(params.call, position, row, int(params.rows));
  return 0u;
}

// Columns k .. k+3 of row n; k is a multiple of 4.
vec4 four(uint n, uint k) {
  const uint strip = n >> 4, g = n & 7u, t = (k >> 3) & 3u, s = ((k >> 4) & 2u) + ((k >> 2) & 1u);
  uvec4 w[LIVE];
  fetch(w, strip * params.tiles + (k >> 6), 4u * g + t, s);
#if defined(WEIGHT_q4)
  w[0].x = w[0][s];
#else
  if ((s & 1u) != 0u) w[0] = w[0].zwxy;
#endif
  const uint pair = pair_of(strip, g, k);
  const vec2 scale = load_scale(pair);
  vec4 a, b;
  unpack(w, load_zero(pair), a, b);
  return (n & 8u) != 0u ? b * scale.y : a * scale.x;
}

void main() {
  const uint q = item(), first = 4u * q;
  if (first >= params.count) return;
  const uint position = first / params.columns, column = first - position * params.columns;
  vec4 v = vec4(0.0);
  if (params.columns % 4u == 0u) {
    v = four(row_of(position), column);
  } else {
    for (uint i = 0u; i < min(4u, params.count - first); ++i) {
      const uint at = (first + i) / params.columns, k = first + i - at * params.columns;
      v[i] = four(row_of(at), k & ~3u)[k & 3u];
    }
  }
  STORE4(DTYPE, out_, q, v);
}
