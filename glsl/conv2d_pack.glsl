// SPDX-License-Identifier: Apache-2.0
// Packs the weight [channels, (input channel, ky, kx)] of a convolution for conv/matrix.glslh and conv2d_dot.glsl:
// [chunk][channel][4 vectors], vectors of 16 bytes (8 fp16 or 16 int8 columns of a tap) in order of (tap, vector). Columns and taps
// past the last are 0; conv/weight_index.glslh says what they are. One invocation makes a vector.
// Bindings: 0 out, 1 weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant WEIGHT f16 i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { WORD(WEIGHT) weight_[]; };

layout(push_constant) uniform Params {
  uint channels;
  uint columns;   // of a tap
  uint taps;
  uint row_taps;  // that are one
  uint vectors;  // of a tap
  uint count;  // of vectors
} params;

#define COLUMNS params.columns
#define TAPS params.taps
#define ROW_TAPS params.row_taps
#include "conv/weight_index.glslh"

ONE(WEIGHT) weight_at(uint channel, uint column, uint tap) {
  if (column >= COLUMNS || tap >= TAPS) return ONE(WEIGHT)(0);
  return LOAD1(WEIGHT, weight_, weight_index(channel, column, tap));
}

void main() {
  if (item() >= params.count) return;
  uint rest = item();
  const uint vector = take(rest, 4u), channel = take(rest, params.channels);
  const uint i = rest * 4u + vector, tap = i / params.vectors, first = i % params.vectors;
  uvec4 packed;
  for (uint w = 0u; w < 4u; ++w) {
#if defined(WEIGHT_f16)
    const uint c = first * 8u + w * 2u;
    packed[w] = packHalf2x16(vec2(weight_at(channel, c, tap), weight_at(channel, c + 1u, tap)));
#else
    const uint c = first * 16u + w * 4u;
    packed[w] = pack_i8(ivec4(weight_at(channel, c, tap), weight_at(channel, c + 1u, tap), weight_at(channel, c + 2u, tap),
                            weight_at(channel, c + 3u, tap)));
#endif
  }
  out_[item()] = packed;
}
