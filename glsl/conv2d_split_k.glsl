// SPDX-License-Identifier: Apache-2.0
// fp32 sums of parts of a convolution of fp16, added: conv/split_k.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant OUT nchw channels_last
#define DTYPE f16
#define DTYPE_f16 1
#include "conv/split_k.glslh"
