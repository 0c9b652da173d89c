// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers in one group by cooperative matrices of bytes, with exact sums; a workgroup computes BM x BN
// outputs: conv/matrix.glslh.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * w[n, k] * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
// Bindings: 0 out, 1 partial sums, 2 tickets, 3 x, 4 weight, 5 bias, 6 scale, 7 weight sums; OUT channels_last: 8 other.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant DTYPE f32 f16 i8 u8
#pragma variant OUT nchw channels_last
// A channels-last result of f32 is read by nothing (ops/conv/channels_last_product.cpp).
#pragma without DTYPE=f32 OUT=channels_last
#define INTEGERS
#include "conv/matrix.glslh"

void main() { convolve(); }
