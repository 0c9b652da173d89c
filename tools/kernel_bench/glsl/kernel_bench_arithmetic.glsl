// SPDX-License-Identifier: Apache-2.0
// Arithmetic in registers and nothing else: the ceilings of fused multiply-add in fp32 and in pairs of fp16, and of the
// dot product of four bytes. Sixteen independent sums hide the latency of each.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DOES f32 f16 dot
#if defined(DOES_f16)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#elif defined(DOES_dot)
#extension GL_EXT_integer_dot_product : require
#endif
#include "launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };
layout(push_constant) uniform Params {
  uint steps;
  uint seed;
} params;

#define SUMS 16u

#if defined(DOES_f32)
#define TYPE float
#define MADE(x) (float((x) & 255u) * 0.001)
#define STEP(a, b, sum) fma(a, b, sum)
#define WORD_OF(sum) floatBitsToUint(sum)
#elif defined(DOES_f16)
#define TYPE f16vec2
#define MADE(x) f16vec2(vec2((x) & 255u) * 0.001)
#define STEP(a, b, sum) fma(a, b, sum)
#define WORD_OF(sum) packFloat2x16(sum)
#else
#define TYPE int
#define MADE(x) int((x) * 0x9e3779b9u)
#define STEP(a, b, sum) (sum + dotPacked4x8EXT(a, b))
#define WORD_OF(sum) uint(sum)
#endif

void main() {
  TYPE sum[SUMS];
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = MADE(params.seed + item() * SUMS + i);
  TYPE a = MADE(params.seed + item()), b = MADE(params.seed * 3u + lane());
  for (uint step = 0u; step < params.steps; ++step) {
    [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = STEP(a, b, sum[i]);
    [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = STEP(b, sum[(i + 1u) % SUMS], sum[i]);
  }
  uint all = 0u;
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) all ^= WORD_OF(sum[i]);
  if (all == 0x9e3779b9u) out_[0] = all;  // hardly ever, but the compiler cannot know
}
