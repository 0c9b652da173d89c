// SPDX-License-Identifier: Apache-2.0
// The end of a split-K convolution of 8-bit integers: int32 sums of parts are added, then scaled, with bias, activation and
// requantization: conv/add_splits.glslh.
// Bindings: 0 out, 1 partial sums, 2 bias, 3 scale, 4 weight sums; OUT channels_last: 5 other.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16 i8 u8
#pragma variant OUT nchw channels_last
// As conv2d_matrix_int8.glsl.
#pragma without DTYPE=f32 OUT=channels_last
#define INTEGERS
#include "conv/add_splits.glslh"
