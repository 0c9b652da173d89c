// SPDX-License-Identifier: Apache-2.0
// 2D convolution of fp16 in one group by cooperative matrices; a workgroup computes BM x BN outputs: conv/matrix.glslh.
//   out[b, n, y, x] = act(sum_k patch(b, y, x)[k] * w[n, k] + bias[n])
// X nchw: x may be multiplied by factors[b, c] while it is loaded, rounded to fp16.
// Bindings: 0 out, 1 partial sums, 2 tickets, 3 x, 4 weight; X nchw: the factors; then the bias; OUT channels_last: other.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant X channels_last nchw
#pragma variant OUT nchw channels_last
#define DTYPE f16
#define DTYPE_f16 1
#include "conv/matrix.glslh"

void main() { convolve(); }
