// SPDX-License-Identifier: Apache-2.0
// The end of a split-K convolution of fp16: fp32 sums of parts are added, then bias and activation: conv/add_splits.glslh.
// Bindings: 0 out, 1 partial sums, 2 bias; OUT channels_last: 3 other.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant OUT nchw channels_last
#define DTYPE f16
#define DTYPE_f16 1
#include "conv/add_splits.glslh"
