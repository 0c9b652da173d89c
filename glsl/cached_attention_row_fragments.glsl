// SPDX-License-Identifier: Apache-2.0
// attention/one_row.glslh in fp16, its positions by cooperative matrices (attention/positions_fragments.glslh).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#define DTYPE f16
#define DTYPE_f16
#define CACHE_own
#define ATTENTION_FRAGMENTS
#include "attention/one_row.glslh"
