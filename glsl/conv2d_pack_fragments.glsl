// SPDX-License-Identifier: Apache-2.0
// Packs the weight [channels, (input channel, ky, kx)] of a convolution for conv/fragments.glslh: as linear/packed.glslh says of
// fp16, with columns in order of (tap, column of the tap), those padded with zeros to whole vectors of eight; conv/weight_index.glslh
// says what they are. Of fp32 each vector of a step is two: of high parts and of low ones (math/split.glslh), after rows are
// multiplied by 2^14 / unit. Of int8 vectors have sixteen columns, and one of fp16 is two of them. One invocation makes a step of a
// lane.
// Bindings: 0 out, 1 weight; WEIGHT f32: 2 units (conv2d_row_units.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant WEIGHT f16 f32 i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#if defined(WEIGHT_f32)
#include "math/split.glslh"
#endif

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { WORD(WEIGHT) weight_[]; };
#if defined(WEIGHT_f32)
layout(set = 0, binding = 2) readonly buffer Units { float units_[]; };
#endif

layout(push_constant) uniform Params {
  uint channels;
  uint columns;   // of a tap
  uint taps;
  uint row_taps;  // that are one
  uint vectors;  // of a tap
  uint tiles;    // of a row panel
  uint count;    // of steps
} params;

#define COLUMNS params.columns
#define TAPS params.taps
#define ROW_TAPS params.row_taps
#include "conv/weight_index.glslh"

#if defined(WEIGHT_i8)
#define FOURS 4u  // of a vector
#else
#define FOURS 2u
#endif

// Four neighbouring columns of a row: number `at`.
VEC(WEIGHT) four(uint row, uint at) {
  const uint tap = at / FOURS / params.vectors, first = at % (FOURS * params.vectors) * 4u;
  VEC(WEIGHT) w = ZERO(WEIGHT);
  if (row >= params.channels || tap >= TAPS) return w;
  for (uint i = 0u; i < min(4u, COLUMNS - min(first, COLUMNS)); ++i) {
    w[i] = LOAD1(WEIGHT, weight_, weight_index(row, first + i, tap));
  }
  return w;
}

#if defined(WEIGHT_f32)
void split_row(uint row, vec4 w, out uvec2 high, out uvec2 low) {
  const int exponent = int(floatBitsToUint(units_[min(row, params.channels - 1u)]) >> 23) - 127;
  split_two(w, power_of_2(14 - exponent), high, low);
}
#endif

void main() {
  if (item() >= params.count) return;
  uint rest = item();
  const uint l = take(rest, 32u), s = take(rest, 4u), tile = take(rest, params.tiles), row = rest * 16u + (l >> 2);
  const uint half_vector = tile * 16u + (s >> 1) * 8u + (l & 3u) * 2u + (s & 1u);
#if defined(WEIGHT_i8)
  for (uint i = 0u; i < 4u; ++i) out_[item()][i] = PACK(i8, four(row + (i >> 1) * 8u, 2u * half_vector + (i & 1u)));
#else
  const VEC(WEIGHT) a = four(row, half_vector), b = four(row + 8u, half_vector);
#if defined(WEIGHT_f16)
  out_[item()] = uvec4(PACK(f16, a), PACK(f16, b));
#else
  const uint at = (item() >> 5) * 64u + l;
  uvec4 high, low;
  split_row(row, a, high.xy, low.xy);
  split_row(row + 8u, b, high.zw, low.zw);
  out_[at] = high;
  out_[at + 32u] = low;
#endif
#endif
}
