// SPDX-License-Identifier: Apache-2.0
// Integer products for many rows of x (the formula is in linear/linear_int8.glslh) by cooperative matrices of bytes
// (linear/matrix_int8.glslh), for weights with one scale a row: the sums are exact, and scales and zero points are applied once, at
// the end. A workgroup computes BM x BN outputs.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero; OUT bytes: out_scale, out_zero; then rows, weight sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant OUT f32 f16 bytes
#pragma variant WEIGHT q4 q8
#define X_PARAMS
#define SUM int
#define HALVES false
#include "linear/matrix_int8.glslh"

void multiply_tile() {
  [[unroll]] for (uint k = 0u; k < 64u / TK; ++k) {
    A_MATRIX a[MATRICES_M];
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      coopMatLoad(a[i], shared_, (a_row() + i * TM) * ROW + ROW_VECTOR(k), ROW, gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
      B_MATRIX b;
      coopMatLoad(b, shared_, (b_row() + j * TN) * ROW + ROW_VECTOR(k), ROW, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
        sum_[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sum_[i * MATRICES_N + j]);
      }
    }
  }
}

// What the epilogue needs of four columns of the weight.
struct Columns {
  vec4 scale;
  ivec4 sum, zero;
};

Columns c_;

void begin_vec4(uint n) {
  c_ = Columns(vec4(0.0), ivec4(0), ivec4(0));
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uint pair = min((n + i) >> 4, (params.n - 1u) >> 4) * 8u + ((n + i) & 7u), half_ = ((n + i) >> 3) & 1u;
    c_.scale[i] = load_scale(pair)[half_] / float(UNIT);
    if (HAS_ROW_ZERO != 0u) c_.sum[i] = weight_sums_[pair][half_] * UNIT;
    if (HAS_ZERO != 0u) c_.zero[i] = whole_zero(pair)[half_];
  }
}

vec4 finished(uvec4 sums, uvec4 x_row) {
  ivec4 whole = ivec4(sums);
  if (HAS_ROW_ZERO != 0u) whole -= int(x_row.y) * c_.sum;
  if (HAS_ZERO != 0u) whole -= int(x_row.z) * c_.zero;
  return vec4(whole) * c_.scale * uintBitsToFloat(x_row.x);
}

void main() {
  if (first_n() >= params.n) return;  // the whole workgroup
  [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sum_[i] = SUMS(int)(0);
  [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
    if (d < TILES) load_bytes(d, d);
  }
  for (uint first = 0u; first < TILES; first += DEPTH) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      if (TILES % DEPTH == 0u || first + d < TILES) {
        store_bytes(d);
        barrier();
        if (first + d + DEPTH < TILES) load_bytes(d, first + d + DEPTH);
        multiply_tile();
        barrier();
      }
    }
  }
  store_sums();
}
