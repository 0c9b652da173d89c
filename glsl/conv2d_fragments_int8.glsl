// SPDX-License-Identifier: Apache-2.0
// conv/fragments.glslh of 8-bit integers, stored as conv2d_matrix_int8.glsl says, with the same bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#pragma variant DTYPE f32 f16 i8 u8
#pragma variant OUT nchw channels_last
// A channels-last result of f32 is read by nothing (ops/conv/channels_last_product.cpp).
#pragma without DTYPE=f32 OUT=channels_last
#define INTEGERS
#include "conv/fragments.glslh"

void main() { convolve(); }
