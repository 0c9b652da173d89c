// SPDX-License-Identifier: Apache-2.0
// Sums of parts of a convolution of 8-bit integers, added: conv/split_k.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16 i8 u8
#pragma variant OUT nchw channels_last
#define INTEGERS
#include "conv/split_k.glslh"
