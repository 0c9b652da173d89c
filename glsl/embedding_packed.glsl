// SPDX-License-Identifier: Apache-2.0
// out[i, :] = (weight[index[i], :] - zero) * scale from the layout of linear/packed.glslh, which a tied linear layer shares. An
// index outside of 0 .. rows-1 is reported and reads row 0. fp32, one rounding for the product and one for the output's type. One
// invocation computes a vec4 group of the output.
// Bindings: 0 out, 1 status, 2 weight, 3 index, 4 scale, 5 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8
#pragma variant WEIGHT_STORAGE buffer texture2d
#include "core/launch.glslh"
#include "core/types.glslh"
#include "linear/weight.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
WEIGHT_BINDING(2)
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(set = 0, binding = 4) readonly buffer Scale { uint scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { uint zero_[]; };  // the scales again when all are zero
layout(push_constant) uniform Params {
  uint count;     // of out
  uint position;  // of the first index
  uint rows;      // of the table
  uint first;     // row of weight_
  uint block;     // rows of weight_
  uint columns;
  uint tiles;     // of a row panel
  uint groups;    // of a row
  uint call;
} params;

layout(constant_id = 1) const uint GROUP = 0u;  // columns; 0: the whole row
layout(constant_id = 2) const uint SCALE_F16 = 0u;
layout(constant_id = 3) const uint HAS_ZERO = 0u;
layout(constant_id = 4) const uint BLOCKS = 0u;  // other dispatches write the rows of other blocks
#define WHOLE_TILES 0u
#define GROUPS params.groups
#include "linear/packed.glslh"
#include "core/embedding_rows.glslh"

// Columns k .. k+3 of row n; k is a multiple of 4.
vec4 four(uint n, uint k) {
  const uint panel = n >> 4, g = n & 7u, t = (k >> 3) & 3u, s = ((k >> 4) & 2u) + ((k >> 2) & 1u);
  uvec4 w[LIVE];
  fetch(w, panel * params.tiles + (k >> 6), 4u * g + t, s);
#if defined(WEIGHT_q4)
  w[0].x = w[0][s];
#else
  if ((s & 1u) != 0u) w[0] = w[0].zwxy;
#endif
  const uint pair = pair_of(panel, g, k);
  const vec2 scale = load_scale(pair);
  vec4 a, b;
  unpack(w, load_zero(pair), a, b);
  return (n & 8u) != 0u ? b * scale.y : a * scale.x;
}

void main() {
  const uint q = item(), first = 4u * q;
  if (first >= params.count) return;
  const uint position = first / params.columns, column = first - position * params.columns;
  if (params.columns % 4u == 0u) {
    const uint row = row_of(position);
    if (row < params.block) STORE4(DTYPE, out_, q, four(row, column));
    return;
  }
  vec4 v = vec4(0.0);
  for (uint i = 0u; i < min(4u, params.count - first); ++i) {
    const uint at = (first + i) / params.columns, k = first + i - at * params.columns, row = row_of(at);
    if (row < params.block) v[i] = four(row, k & ~3u)[k & 3u];
    if (BLOCKS != 0u && row < params.block) store_one(first + i, v[i]);
  }
  if (BLOCKS == 0u) STORE4(DTYPE, out_, q, v);
}
