// SPDX-License-Identifier: Apache-2.0
// 2D depthwise convolution of 8-bit integers with exact sums; one invocation computes a block of neighbouring outputs:
// conv/depthwise.glslh.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * (w[n, k] - zero[n]) * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 scale, 5 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN i8 u8
#pragma variant DTYPE f32 f16 i8 u8
#include "conv/int8.glslh"
#include "conv/depthwise.glslh"

void finish(uint at, uint channel, ivec4 sum) {
  const vec4 scale = vec4(LOAD1(f32, scale_, channel)), bias = vec4(HAS_BIAS != 0u ? LOAD1(f32, bias_, channel) : 0.0);
  STORE4(DTYPE, out_, at >> 2, result(sum, scale, bias));
}

void main() { convolve(); }
