// SPDX-License-Identifier: Apache-2.0
// A scale for each row of a packed fp32 weight (linear/packed.glslh), in pairs as scales are: the power of two whose inverse brings
// the largest finite element into [2^14, 2^15). It is negative where the row has Inf, NaN, or numbers that are subnormal or become
// so in fp16 (linear/split_weights.glslh). One invocation makes one pair.
// Bindings: 0 out, 1 weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "math/split.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec2 out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { uvec4 weight_[]; };
layout(push_constant) uniform Params {
  uint tiles;
  uint count;  // of pairs
} params;

uint scale_of_row(uint first) {
  uint most = 0u, least = 0x7f800000u;
  bool all_finite = true;
  for (uint i = 0u; i < params.tiles * 16u; ++i) {
    // The four lanes of a row in a tile, and its vectors, which alternate between the rows of the pair.
    const uvec4 size = weight_[first + (i >> 4) * 256u + (i & 3u) + ((i >> 2) & 3u) * 64u] & 0x7fffffffu;
    for (uint j = 0u; j < 4u; ++j) {
      all_finite = all_finite && size[j] < 0x7f800000u;
      most = max(most, size[j] < 0x7f800000u ? size[j] : 0u);
      least = min(least, size[j] != 0u ? size[j] : least);
    }
  }
  const int up = row_power(int(most));
  // Below 2^-126, which a driver may take for 0, or below 2^-14 once multiplied.
  const bool subnormal = least < 0x800000u || int(least >> 23) - 127 + up < -14;
  return floatBitsToUint(power_of_2(-up)) | (!all_finite || subnormal ? 0x80000000u : 0u);
}

void main() {
  const uint i = item();
  if (i >= params.count) return;
  const uint first = (i >> 3) * params.tiles * 256u + (i & 7u) * 4u;
  out_[i] = uvec2(scale_of_row(first), scale_of_row(first + 32u));
}
