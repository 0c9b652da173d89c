// SPDX-License-Identifier: Apache-2.0
// A packed fp32 weight (linear/packed.glslh) as two fp16 for each element (math/split.glslh), after the power of two of its row
// (linear_pack_powers.glsl): vector 2s has the high parts of step s of rows g and g + 8, vector 2s + 1 the low ones. One invocation
// makes both.
// Bindings: 0 out, 1 weight, 2 scales.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/index.glslh"
#include "core/launch.glslh"
#include "math/split.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { uvec4 weight_[]; };
layout(set = 0, binding = 2) readonly buffer Scale { uint scale_[]; };  // of rows g and g + 8 in turn
layout(push_constant) uniform Params {
  uint tiles;  // of a row panel
  uint count;  // of steps
} params;

void split_row(uvec4 w, uint scale, out uvec2 high, out uvec2 low) {
  split_two(uintBitsToFloat(w), power_of_2(127 - int((scale >> 23) & 0xffu)), high, low);
}

void main() {
  if (item() >= params.count) return;
  uint rest = item();
  const uint l = take(rest, 32u), s = take(rest, 4u), tile = rest, at = tile * 256u + s * 64u + l;
  const uint pair = (tile / params.tiles * 8u + (l >> 2)) * 2u;
  uvec4 high, low;
  split_row(weight_[at], scale_[pair], high.xy, low.xy);
  split_row(weight_[at + 32u], scale_[pair + 1u], high.zw, low.zw);
  out_[at] = high;
  out_[at + 32u] = low;
}
