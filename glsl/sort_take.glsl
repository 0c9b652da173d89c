// SPDX-License-Identifier: Apache-2.0
// The first `kept` of each sorted row: values[o, j, i] = x[o, place, i] and places[o, j, i] = place, of the pair j of row o * inner + i.
// One invocation makes a vec4 group of both.
// Bindings: 0 values, 1 places, 2 pairs, 3 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Values { WORD(BITS) values_[]; };
layout(set = 0, binding = 1) writeonly buffer Places { WORD(i32) places_[]; };
layout(set = 0, binding = 2) readonly buffer Pairs { uvec2 pairs_[]; };
layout(set = 0, binding = 3) readonly buffer X { WORD(BITS) x_[]; };
layout(push_constant) uniform Params {
  uint count;   // of values
  uint kept;
  uint extent;  // of a row of x
  uint inner;
} params;

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  uvec4 v;
  ivec4 places;
  for (uint k = 0u; k < 4u; ++k) {
    uint outer = min(4u * q + k, params.count - 1u);
    const uint column = take(outer, params.inner), j = take(outer, params.kept);
    const uint place = pairs_[(outer * params.inner + column) * params.extent + j].y;
    v[k] = LOAD1(BITS, x_, (outer * params.extent + place) * params.inner + column);
    places[k] = int(place);
  }
  STORE4(BITS, values_, q, v);
  STORE4(i32, places_, q, places);
}
