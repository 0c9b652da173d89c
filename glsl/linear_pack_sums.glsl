// SPDX-License-Identifier: Apache-2.0
// Sums of the integers of each row of a packed weight (linear/packed.glslh), in pairs like its scales: number 8i + g holds rows g
// and g + 8 of row panel i. Columns of padding are 0. One invocation makes one pair.
// Bindings: 0 out, 1 weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant WEIGHT q4 q8
#pragma variant WEIGHT_STORAGE buffer texture2d
#include "core/launch.glslh"
#include "linear/weight.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { ivec2 out_[]; };
WEIGHT_BINDING(1)
layout(push_constant) uniform Params {
  uint tiles;
  uint count;  // of pairs
  uint first;  // the vector of a texture that this block begins with
} params;

#if defined(WEIGHT_STORAGE_texture2d)
uvec4 weight_at(uint i) { return texelFetch(weight_, ivec2((params.first + i) & 4095u, (params.first + i) >> 12), 0); }
#endif

// The sum of the four bytes of a word.
int bytes(uint word) {
  const uint two = (word & 0x00ff00ffu) + ((word >> 8) & 0x00ff00ffu);
  return int((two & 0xffffu) + (two >> 16));
}

void main() {
  const uint i = item();
  if (i >= params.count) return;
  ivec2 sum = ivec2(0);
  for (uint tile = 0u; tile < params.tiles; ++tile) {
    for (uint t = 0u; t < 4u; ++t) {
#if defined(WEIGHT_q4)
      const uvec4 w = WEIGHT_AT(((i >> 3) * params.tiles + tile) * 32u + (i & 7u) * 4u + t);
      for (uint s = 0u; s < 4u; ++s) sum += ivec2(bytes(w[s] & 0x0f0f0f0fu), bytes((w[s] >> 4) & 0x0f0f0f0fu)) - 4 * 8;
#else
      for (uint v = 0u; v < 2u; ++v) {
        const uvec4 w = WEIGHT_AT((((i >> 3) * params.tiles + tile) * 2u + v) * 32u + (i & 7u) * 4u + t);
        sum += ivec2(bytes(w.x) + bytes(w.z), bytes(w.y) + bytes(w.w)) - 8 * 128;
      }
#endif
    }
  }
  out_[i] = sum;
}
