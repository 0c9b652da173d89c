// SPDX-License-Identifier: Apache-2.0
// conv/fragments.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant DTYPE f16 f32
#pragma variant OUT nchw channels_last
#include "conv/fragments.glslh"

void main() { convolve(); }
