// SPDX-License-Identifier: Apache-2.0
// 2D depthwise convolution of floats; one invocation computes a block of neighbouring outputs: conv/depthwise.glslh. Where rows are
// not whole words, COLUMNS is 1: an output each, of which neighbours make words.
//   out[b, n, y, x] = act(sum_k patch(b, y, x)[k] * w[n, k] + bias[n])
// Bindings: 0 out, 1 x, 2 weight, 3 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

#define IN DTYPE
#define OUT_ACCESS writeonly
#include "conv/tensors.glslh"
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // x again when there is none

layout(push_constant) uniform Params {
  CONV_PARAMS
} params;

float weight_at(uint channel, uint k) { return LOAD1(DTYPE, weight_, channel * params.k + k); }
#include "conv/depthwise.glslh"
#include "conv/depthwise_one.glslh"

void finish(uint at, uint channel, vec4 v) {
  if (HAS_BIAS != 0u) v += LOAD1(f32, bias_, channel);
  v = activate(v, ACT);
#if defined(DTYPE_f16)
  if (COLUMNS == 2u) {
    out_[at >> 2][(at >> 1) & 1u] = packHalf2x16(v.xy);
    return;
  }
#endif
  STORE4(DTYPE, out_, at >> 2, v);
}

shared float outputs_[COLUMNS == 1u ? LANES : 1u];

void convolve_singly() {
  const uint count = params.batch * params.groups * params.out_h * params.out_w;
  outputs_[lane()] = item() < count ? output_of(item()) : 0.0;
  barrier();
  const uint first = 4u * lane(), q = group() * (LANES / 4u) + lane();
  if (first >= LANES || 4u * q >= count) return;
  STORE4(DTYPE, out_, q, vec4(outputs_[first], outputs_[first + 1u], outputs_[first + 2u], outputs_[first + 3u]));
}

void main() {
  if (COLUMNS == 1u) {
    convolve_singly();
  } else {
    convolve();
  }
}
