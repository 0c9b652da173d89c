// SPDX-License-Identifier: Apache-2.0
// linear/gemv_fragments.glslh.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant DTYPE f16 f32
#pragma variant WEIGHT q4 q8 f16 f32
#pragma variant X whole tail8 tail split normed split_normed pairs
// A result of f32 is that of integers: weights are quantized, and rows of x whole tiles.
#pragma without DTYPE=f32 WEIGHT=f16
#pragma without DTYPE=f32 X=tail8
#pragma without DTYPE=f32 X=tail
// Weights that are not quantized are of x's dtype; fp32 is split.
#pragma without DTYPE=f16 X=split
#pragma without DTYPE=f16 WEIGHT=f32
#pragma without X=whole WEIGHT=f32
// Of pairs only quantized weights, which are whole numbers.
#pragma without DTYPE=f16 X=pairs
#pragma without X=pairs WEIGHT=f32
// With layer norms, likewise.
#pragma without DTYPE=f32 X=normed
#pragma without DTYPE=f16 X=split_normed
#include "linear/gemv_fragments.glslh"
