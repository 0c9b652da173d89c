// SPDX-License-Identifier: Apache-2.0
// 2D convolution of floats; one invocation sums a vec4 group of outputs: conv/direct.glslh.
//   out[b, n, y, x] = act(sum_k patch(b, y, x)[k] * (w[n, k] - zero[n]) * scale[n] + bias[n])
// Bindings: 0 out, 1 x, 2 weight, 3 bias; WEIGHT i8: 4 scale, 5 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT same i8
#pragma variant STORAGE buffer texture3d
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

#define IN DTYPE
#define OUT_ACCESS writeonly
#include "conv/tensors.glslh"
#if defined(WEIGHT_i8)
layout(set = 0, binding = 2) readonly buffer Weight { WORD(i8) weight_[]; };
layout(set = 0, binding = 4) readonly buffer Scale { WORD(f32) scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { WORD(i8) zero_[]; };  // any buffer when all are zero
#else
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
#endif
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // any buffer when there is none

layout(push_constant) uniform Params { CONV_PARAMS } params;

#include "conv/im2col.glslh"

float weight_at(uint channel, uint k) {
  const uint at = channel * params.k + k;
#if defined(WEIGHT_i8)
  return float(LOAD1(i8, weight_, at) - (HAS_ZERO != 0u ? LOAD1(i8, zero_, channel) : 0));
#else
  return LOAD1(DTYPE, weight_, at);
#endif
}
#include "conv/direct.glslh"

void main() {
  const uint q = item();
  if (4u * q >= params.batch * params.groups * params.out_channels * params.out_h * OUT_W) return;
  vec4 v = convolve_vec4(q);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
#if defined(WEIGHT_i8)
    v[i] *= LOAD1(f32, scale_, channel_[i]);
#endif
    if (HAS_BIAS != 0u) v[i] += LOAD1(f32, bias_, channel_[i]);
  }
  STORE_VEC4(q, activate(v, ACT));
}
