// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers with exact sums; one invocation sums a vec4 group of outputs: conv/direct.glslh.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * (w[n, k] - zero[n]) * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 scale, 5 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN i8 u8
#pragma variant DTYPE f32 f16 i8 u8
#pragma variant STORAGE buffer texture3d
#include "conv/int8.glslh"
#include "conv/direct.glslh"

void main() {
  const uint q = item();
  if (4u * q >= params.batch * params.groups * params.out_channels * params.out_h * OUT_W) return;
  const ivec4 sum = convolve_vec4(q);
  vec4 scale, bias = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    scale[i] = LOAD1(f32, scale_, channel_[i]);
    if (HAS_BIAS != 0u) bias[i] = LOAD1(f32, bias_, channel_[i]);
  }
  STORE_VEC4(q, result(sum, scale, bias));
}
