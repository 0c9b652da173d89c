// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers, a window an invocation: conv_depthwise.glslh, with exact sums.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * (w[n, k] - zero[n]) * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN i8 u8
#pragma variant DTYPE f32 f16 i8 u8
#define INTEGERS
#include "launch.glslh"
#include "modes.glslh"
#include "types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { WORD(i8) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // x again when there is none
layout(set = 0, binding = 4) readonly buffer Scale { WORD(f32) scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { WORD(i8) zero_[]; };  // x again when all are zero

#define CONV_SPEC 5
layout(constant_id = 1) const uint HAS_BIAS = 0u;
layout(constant_id = 2) const uint HAS_ZERO = 0u;
layout(constant_id = 3) const uint ROW_QUADS = 0u;  // of the other kernels
layout(constant_id = 4) const uint ACT = 0u;

layout(push_constant) uniform Params {
  CONV_PARAMS
  CONV_INTEGER_PARAMS
} params;

int weight_at(uint channel, uint k) {
  return LOAD1(i8, weight_, channel * params.k + k) - (HAS_ZERO != 0u ? LOAD1(i8, zero_, channel) : 0);
}
void finish(uint at, uint channel, ivec4 sum);
#include "conv_depthwise.glslh"
#include "conv_integers.glslh"

void finish(uint at, uint channel, ivec4 sum) {
  const vec4 scale = vec4(LOAD1(f32, scale_, channel)), bias = vec4(HAS_BIAS != 0u ? LOAD1(f32, bias_, channel) : 0.0);
  STORE4(DTYPE, out_, at >> 2, result(sum, scale, bias));
}

void main() { convolve(); }
