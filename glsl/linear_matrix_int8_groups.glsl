// SPDX-License-Identifier: Apache-2.0
// Integer products for many rows of x (the formula is in linear/linear_int8.glslh) by cooperative matrices of bytes
// (linear/matrix_int8.glslh), for weights with a scale for each group of a multiple of 32 columns. A *run*, the columns of a tile
// that share a scale (64 or 32), is summed in integers, matrix by matrix, so that these sums need few registers; its product with
// the scale is added in fp32. Zero points need the sums of a run's bytes: products with a matrix of ones, which give each element
// the sum that it needs. A workgroup computes BM x BN outputs.
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
// No operator with bytes in and out has int8 weights by group.
#pragma without OUT=bytes WEIGHT=q8
#define X_PARAMS
#define SUM float
// H200, linear_qta8a_qga4w_qta8o, 512 x 1024 x 4096: as fast, and a third of the code. Rows with one scale (linear_matrix_int8.glsl)
// take 3 to 7 % longer so.
#define ONE_END
#define HALVES (GROUP % 64u != 0u)
#include "linear/matrix_int8.glslh"

#define RUNS (GROUP % 64u == 0u ? 1u : 2u)
#define STEPS (64u / RUNS / TK)
shared float scales_[2u * BN];  // [run][column]
shared int zeros_[2u * BN];
shared int row_zeros_[BM];
SUMS(int) row_zero_[MATRICES_M];
uvec2 scale_next_[W_LOADS];
ivec2 zero_next_[W_LOADS];

// Of the four lanes that own a pair of weight rows, lane t loads the scale and zero points of run t.
void load_tile(uint tile) {
  load_bytes(0u, tile);
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, l = panel_lane(e & 31u);
    const uint pair = pair_of(panel_of(e), l >> 2, tile * 64u + min(l & 3u, RUNS - 1u) * 32u);
    scale_next_[r] = scale_words(pair);
    if (HAS_ZERO != 0u) zero_next_[r] = whole_zero(pair);
  }
}

void store_tile() {
  store_bytes(0u);
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, l = panel_lane(e & 31u), at = (l & 3u) * BN + (e >> 5) * 16u + (l >> 2);
    if ((l & 3u) >= RUNS) continue;
    const vec2 scale = scale_of(scale_next_[r]);
    scales_[at] = scale.x;
    scales_[at + 8u] = scale.y;
    if (HAS_ZERO != 0u) {
      zeros_[at] = zero_next_[r].x;
      zeros_[at + 8u] = zero_next_[r].y;
    }
  }
}

void multiply_run(uint run) {
  A_MATRIX a[MATRICES_M * STEPS];
  SUMS(int) x_sum[MATRICES_M];  // of x minus its zero point
  [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
    [[unroll]] for (uint k = 0u; k < STEPS; ++k) {
      coopMatLoad(a[i * STEPS + k], shared_, (a_row() + i * TM) * ROW + ROW_VECTOR(run * STEPS + k), ROW,
                  gl_CooperativeMatrixLayoutRowMajor);
    }
    if (HAS_ZERO != 0u) {
      x_sum[i] = SUMS(int)(0);
      [[unroll]] for (uint k = 0u; k < STEPS; ++k) x_sum[i] = coopMatMulAdd(a[i * STEPS + k], B_MATRIX(int8_t(1)), x_sum[i]);
      if (HAS_ROW_ZERO != 0u) x_sum[i] = x_sum[i] - row_zero_[i] * int(64u / RUNS);
    }
  }
  [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
    const uint column = run * BN + b_row() - BM + j * TN;
    B_MATRIX b[STEPS];
    SUMS(int) weight_sum = SUMS(int)(0), zero;
    SUMS(float) scale;
    [[unroll]] for (uint k = 0u; k < STEPS; ++k) {
      coopMatLoad(b[k], shared_, (b_row() + j * TN) * ROW + ROW_VECTOR(run * STEPS + k), ROW, gl_CooperativeMatrixLayoutColumnMajor);
      if (HAS_ROW_ZERO != 0u) weight_sum = coopMatMulAdd(A_MATRIX(int8_t(1)), b[k], weight_sum);
    }
    // A stride of 0 makes every row the same.
    coopMatLoad(scale, scales_, column, 0u, gl_CooperativeMatrixLayoutRowMajor);
    if (HAS_ZERO != 0u) coopMatLoad(zero, zeros_, column, 0u, gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      SUMS(int) whole = SUMS(int)(0);
      [[unroll]] for (uint k = 0u; k < STEPS; ++k) whole = coopMatMulAdd(a[i * STEPS + k], b[k], whole);
      if (HAS_ROW_ZERO != 0u) whole = whole - row_zero_[i] * weight_sum;
      if (HAS_ZERO != 0u) whole = whole - zero * x_sum[i];
      sum_[i * MATRICES_N + j] = sum_[i * MATRICES_N + j] + SUMS(float)(whole) * scale;
    }
  }
}

void begin_vec4(uint n) {}
vec4 finished(uvec4 sums, uvec4 x_row) { return uintBitsToFloat(sums) * (uintBitsToFloat(x_row.x) / float(UNIT)); }

void main() {
  if (first_n() >= params.n) return;  // the whole workgroup
  load_tile(0u);
  if (HAS_ROW_ZERO != 0u) {
    for (uint i = lane(); i < BM; i += LANES) {
      row_zeros_[i] = int(rows_[params.first_m + min(first_m() + i, params.m - 1u)].y);
    }
    barrier();
  }
  [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
    if (HAS_ROW_ZERO != 0u) coopMatLoad(row_zero_[i], row_zeros_, a_row() + i * TM, 0u, gl_CooperativeMatrixLayoutColumnMajor);
  }
  [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sum_[i] = SUMS(float)(0.0);
  for (uint tile = 0u; tile < TILES; ++tile) {
    store_tile();
    barrier();
    if (tile + 1u < TILES) load_tile(tile + 1u);
    [[unroll]] for (uint run = 0u; run < RUNS; ++run) multiply_run(run);
    barrier();
  }
  store_sums();
}
