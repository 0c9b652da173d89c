// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers for many output channels of a group, with exact sums; a workgroup computes BM x BN outputs:
// conv/tiled.glslh.
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
#define INTEGERS
#define WEIGHT_q8
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"
#include "linear/weight.glslh"

#define OUT_ACCESS
#include "conv/tensors.glslh"
WEIGHT_BINDING(2)
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // any buffer when there is none
layout(set = 0, binding = 4) readonly buffer Scale { uint scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { uint zero_[]; };  // the scales again when all are zero

layout(push_constant) uniform Params {
  CONV_PARAMS
  uint tiles;       // of a row panel of the packed weight
  uint row_blocks;  // tiles along the output channels of a group
  uint channels;    // of the output: more than those of the groups where a large weight is taken in blocks of rows
  CONV_INTEGER_PARAMS
} params;

#include "conv/tiled.glslh"
#include "conv/requantize.glslh"

void finish(uint row, uint n, ivec4 sum) {
  store_pixels(row, n, result(sum, vec4(row_scale(row)), vec4(HAS_BIAS != 0u ? LOAD1(f32, bias_, row) : 0.0)));
}

void main() { convolve(); }
