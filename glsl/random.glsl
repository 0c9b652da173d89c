// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend on a seed, a stream and their place alone: Philox4x32 of 10 rounds (Salmon et al., 2011), with the
// seed as its key and {block, 0, stream, 0} as its counter. A block is four elements, which one invocation computes. f32: uniform
// in [0, 1), multiples of 2^-24, or NORMAL by Box and Muller; i32: 31 bits.
// Bindings: 0 out, 1 seed.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 i32
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const bool NORMAL = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer Seed { WORD(i32) seed_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint stream;
} params;

uvec4 philox(uvec4 at, uvec2 key) {
  for (uint r = 0u; r < 10u; ++r) {
    uint high0, low0, high1, low1;
    umulExtended(0xd2511f53u, at.x, high0, low0);
    umulExtended(0xcd9e8d57u, at.z, high1, low1);
    at = uvec4(high1 ^ at.y ^ key.x, low1, high0 ^ at.w ^ key.y, low0);
    key += uvec2(0x9e3779b9u, 0xbb67ae85u);
  }
  return at;
}

#ifdef DTYPE_f32
vec4 numbers(uvec4 bits) {
  const vec4 u = vec4(bits >> 8u) * 5.9604644775390625e-8;
  if (!NORMAL) return u;
  // Our own functions: drivers may be off by 2^-11 in a sine, and by as much in the root of a small logarithm.
  const vec2 radius = sqrt(-2.0 * vec2(log_1_plus(-u.x), log_1_plus(-u.z))), angle = 6.28318530717958648 * u.yw;
  return vec4(radius.x * cosine(angle.x), radius.x * sine(angle.x), radius.y * cosine(angle.y), radius.y * sine(angle.y));
}
#else
ivec4 numbers(uvec4 bits) { return ivec4(bits >> 1u); }
#endif

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const uvec2 key = uvec2(LOAD1(i32, seed_, 0u), LOAD1(i32, seed_, 1u));
  STORE4(DTYPE, out_, q, numbers(philox(uvec4(q, 0u, params.stream, 0u), key)));
}
