// SPDX-License-Identifier: Apache-2.0
// 2D convolution of floats for many output channels of a group; a workgroup computes BM x BN outputs: conv/tiled.glslh.
//   out[b, n, y, x] = act(sum_k patch(b, y, x)[k] * (w[n, k] - zero[n]) * scale[n] + bias[n])
// Bindings: 0 out, 1 x, 2 weight, 3 bias; WEIGHT q8: 4 scale, 5 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q8 f16 f32
#pragma variant STORAGE buffer texture3d
// Weights that are not quantized have x's dtype.
#pragma without DTYPE=f32 WEIGHT=f16
#pragma without DTYPE=f16 WEIGHT=f32
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"
#include "linear/weight.glslh"

#define IN DTYPE
#define OUT_ACCESS
#include "conv/tensors.glslh"
WEIGHT_BINDING(2)
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // any buffer when there is none
#if defined(WEIGHT_q8)
layout(set = 0, binding = 4) readonly buffer Scale { uint scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { uint zero_[]; };  // the scales again when all are zero
#endif

layout(push_constant) uniform Params {
  CONV_PARAMS
  uint tiles;       // of a row panel of the packed weight
  uint row_blocks;  // tiles along the output channels of a group
  uint channels;    // of the output: more than those of the groups where a large weight is taken in blocks of rows
} params;

#include "conv/tiled.glslh"

void finish(uint row, uint n, vec4 v) {
#ifdef QUANTIZED
  v *= row_scale(row);
#endif
  if (HAS_BIAS != 0u) v += LOAD1(f32, bias_, row);
  store_pixels(row, n, activate(v, ACT));
}

void main() { convolve(); }
