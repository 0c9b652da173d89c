// SPDX-License-Identifier: Apache-2.0
// linear/gemv.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8 f16 f32
#pragma variant STORAGE buffer texture3d
#pragma variant WEIGHT_STORAGE buffer texture2d
// Weights that are not quantized have x's dtype.
#pragma without DTYPE=f32 WEIGHT=f16
#pragma without DTYPE=f16 WEIGHT=f32
#include "linear/gemv.glslh"
