// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers for many output channels of a group: conv_tiled.glslh, with exact sums.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * (w[n, k] - zero[n]) * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN i8 u8
#pragma variant DTYPE f32 f16 i8 u8
#define INTEGERS
#define WEIGHT_q8
#include "activation.glslh"
#include "launch.glslh"
#include "modes.glslh"
#include "quantize.glslh"
#include "types.glslh"
#include "weight.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
WEIGHT_BINDING(2)
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // x again when there is none
layout(set = 0, binding = 4) readonly buffer Scale { uint scale_[]; };
layout(set = 0, binding = 5) readonly buffer Zero { uint zero_[]; };  // the scales again when all are zero

#define CONV_SPEC 5
#define GEMM_SPEC 9
layout(constant_id = 1) const uint HAS_BIAS = 0u;
layout(constant_id = 2) const uint HAS_ZERO = 0u;
layout(constant_id = 3) const uint N_QUADS = 0u;  // an image has a multiple of 4 pixels
layout(constant_id = 4) const uint ACT = 0u;
// Of packed.glslh: a row of the weight has one fp32 scale.
#define GROUP 0u
#define GROUPS 1u
#define WHOLE_TILES 1u
#define SCALE_F16 0u

layout(push_constant) uniform Params {
  CONV_PARAMS
  uint tiles;       // of a strip of the packed weight
  uint row_blocks;  // tiles along the output channels of a group
  CONV_INTEGER_PARAMS
} params;

void finish(uint row, uint n, ivec4 sum);
#include "conv_integers.glslh"
#include "conv_tiled.glslh"

void finish(uint row, uint n, ivec4 sum) {
  store_pixels(row, n, result(sum, vec4(row_scale(row)), vec4(HAS_BIAS != 0u ? LOAD1(f32, bias_, row) : 0.0)));
}

void main() { convolve(); }
