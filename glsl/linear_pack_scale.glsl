// SPDX-License-Identifier: Apache-2.0
// Packs scales or zero points [N, G] of a quantized weight into the pairs of linear/packed.glslh. One invocation makes one pair.
// Rows of padding get 0. Zero points (i8) become fp16 of zero + offset.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i8
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint n;
  uint groups;
  uint offset;
  uint count;  // of pairs
} params;

vec2 pair_at(uint n, uint j) {
  vec2 pair = vec2(0.0);
  if (n < params.n) pair.x = float(LOAD1(DTYPE, x_, n * params.groups + j)) + float(params.offset);
  if (n + 8u < params.n) pair.y = float(LOAD1(DTYPE, x_, (n + 8u) * params.groups + j)) + float(params.offset);
  return pair;
}

void main() {
  const uint i = item();
  if (i >= params.count) return;
  const uint panel = (i >> 3) / params.groups, j = (i >> 3) - panel * params.groups;
  const vec2 pair = pair_at(panel * 16u + (i & 7u), j);
#if defined(DTYPE_f32)
  out_[2u * i] = floatBitsToUint(pair.x);
  out_[2u * i + 1u] = floatBitsToUint(pair.y);
#else
  out_[i] = packHalf2x16(pair);
#endif
}
