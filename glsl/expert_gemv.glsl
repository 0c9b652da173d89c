// SPDX-License-Identifier: Apache-2.0
// linear/gemv.glslh for the rows of experts (linear/experts.glslh).
// Bindings: 0 out, 1 status, 2 x, 3 weight, 4 bias, 5 residual; WEIGHT q4, q8: 6 scale, 7 zero; last: experts.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8 f16 f32
// Weights that are not quantized have x's dtype.
#pragma without DTYPE=f32 WEIGHT=f16
#pragma without DTYPE=f16 WEIGHT=f32
#define EXPERTS 17
#include "linear/gemv.glslh"
