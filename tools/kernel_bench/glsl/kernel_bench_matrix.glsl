// SPDX-License-Identifier: Apache-2.0
// Cooperative matrix products of operands that stay in registers: the ceiling of the matrix units. Operands are random,
// because a matrix unit that multiplies zeros takes less power and may run faster than it ever will with data.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#pragma variant DOES f16 s8
#if defined(DOES_f16)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#endif
#include "launch.glslh"

layout(set = 0, binding = 0) buffer Out { uint out_[]; };
layout(set = 0, binding = 1) readonly buffer In { uint in_[]; };
layout(push_constant) uniform Params {
  uint steps;
} params;

layout(constant_id = 1) const uint TM = 16u;
layout(constant_id = 2) const uint TN = 16u;
layout(constant_id = 3) const uint TK = 16u;

#define SUMS 8u
#if defined(DOES_f16)
#define FACTOR float16_t
#define SUM float
#define PER_WORD 2u
#else
#define FACTOR int8_t
#define SUM int
#define PER_WORD 4u
#endif

void main() {
  coopmat<FACTOR, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a;
  coopmat<FACTOR, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> b[2];
  coopmat<SUM, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sum[SUMS];
  coopMatLoad(a, in_, 0u, TK / PER_WORD, gl_CooperativeMatrixLayoutRowMajor);
  [[unroll]] for (uint i = 0u; i < 2u; ++i) coopMatLoad(b[i], in_, i * 64u, TK / PER_WORD, gl_CooperativeMatrixLayoutColumnMajor);
  [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = coopmat<SUM, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(SUM(i));
  for (uint step = 0u; step < params.steps; ++step) {
    [[unroll]] for (uint i = 0u; i < SUMS; ++i) sum[i] = coopMatMulAdd(a, b[i & 1u], sum[i]);
  }
  [[unroll]] for (uint i = 1u; i < SUMS; ++i) sum[0] += sum[i];
  coopMatStore(sum[0], out_, 0u, TN, gl_CooperativeMatrixLayoutRowMajor);
}
