// SPDX-License-Identifier: Apache-2.0
// x . w^T for many rows of x (the formula is in linear/linear.glslh), by cooperative matrices whose elements are in the lanes that
// vulkan/probe.h expects. A packed step is then an operand as it is: weights go from global memory to registers to the product,
// unpacked once for WM rows of x. Only x goes through shared memory, its columns in the order of the steps, in two buffers: one
// barrier a tile; or in one. A workgroup computes BM x BN outputs, a subgroup WM x WN.
//   X halves  x and the output are fp16
//   X split   they are fp32; x comes as two fp16 for each element, of which the second counts 2^-11 (linear_split.glsl); each weight
//             meets both
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant X halves split
#include "linear/operand_parts.glslh"
#if defined(X_split)
#define BUFFERS 1u  // with two, one workgroup has all shared memory of a multiprocessor: H200, 512 rows 620 us against 432
// H200: 16.8 KB of code, not 22.8, so less to compile; MiniLM int4, 32 x 128 tokens, 1.73 ms, not 1.80 to 1.86. With X halves 0.86, not 0.85.
#define TURNS_SUMS
#define BAND (1024u / BM)  // H200, 2048 rows, 4096 -> 14336: 1535 us, and 1620 of all rows at once
#else
#define BUFFERS 2u
#endif
#define WEIGHT_q4 1
#include "linear/matrix.glslh"

#define ROW 9u                     // uvec4 of a row of x in shared memory: 64 fp16 and 8 of padding
#define X_LOADS (BM * 8u / LANES)  // half8
#define PANELS (WN / 16u)          // of a subgroup

#define BUFFER_ROWS (PARTS * BM)   // of a buffer of x

uvec4 x_next_[PARTS * X_LOADS], w_[PANELS], w_next_[PANELS];
// Scales and zero points of both halves of a tile, as stored. SPLIT: the scales of the columns of a sum that a lane has.
#define SCALE uint
#if defined(X_split)
#undef SCALE
#define SCALE uvec4
#endif
SCALE scale_now_[PANELS * 2u], scale_next_[PANELS * 2u];
uint zero_now_[PANELS * 2u], zero_next_[PANELS * 2u];

// The row of x of load r; its half8 is lane % 8.
uint x_row(uint r) { return (lane() >> 3) + r * (LANES / 8u); }

uint panel_of(uint j) { return within_n(first_n() / 16u + gl_SubgroupID % SUBGROUPS_N * PANELS + j); }

void load_tile(uint tile) {
  const uint l = gl_SubgroupInvocationID;
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    w_next_[j] = weight_[(panel_of(j) * TILES + tile) * 32u + l];
    if (GROUP != 0u || HAS_ZERO != 0u) {
      [[unroll]] for (uint h = 0u; h < 2u; ++h) {
        if (h == 1u && GROUP % 64u == 0u) continue;
        const uint k = tile * 64u + h * 32u, pair = pair_of(panel_of(j), l >> 2, k + (l & 3u) * 8u);
#if defined(X_split)
        const uint first = pair_of(panel_of(j), 2u * (l & 3u), k);
        if (GROUP != 0u) scale_next_[2u * j + h] = uvec4(scale_words(first), scale_words(first + 1u));
#else
        if (GROUP != 0u) scale_next_[2u * j + h] = scale_[pair];  // SCALE_F16 where there are groups
#endif
        if (HAS_ZERO != 0u) zero_next_[2u * j + h] = zero_[pair];
      }
    }
  }
  [[unroll]] for (uint r = 0u; r < PARTS * X_LOADS; ++r) {
    const uint row = within_m(first_m() + x_row(r % X_LOADS)) * PARTS + r / X_LOADS;
    x_next_[r] = load_half8(row, tile * 8u + (lane() & 7u));
  }
}

// A half8 holds the columns of one t in two steps: its words go to columns 2t, 2t + 8 of one and of the next matrix.
void store_x(uint buffer_row) {
  [[unroll]] for (uint r = 0u; r < PARTS * X_LOADS; ++r) {
    const uint base = (buffer_row + r / X_LOADS * BM + x_row(r % X_LOADS)) * ROW + (lane() & 4u), t = lane() & 3u;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) shared_[base + i][t] = x_next_[r][i];
  }
}

void turn_over() {
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) w_[j] = w_next_[j];
  [[unroll]] for (uint j = 0u; j < 2u * PANELS; ++j) {
    scale_now_[j] = scale_next_[j];
    zero_now_[j] = zero_next_[j];
  }
}

Affine affine_of_half(uint j, uint h) {
  const uint i = 2u * j + (GROUP % 64u == 0u ? 0u : h);
  const f16vec2 zero = HAS_ZERO != 0u ? unpackFloat2x16(zero_now_[i]) : f16vec2(PLAIN_ZERO);
#if defined(X_split)
  return affine_from(0u, zero);
#else
  return affine_from(scale_now_[i], zero);
#endif
}

// Step s of the weights of row panel j.
B_MATRIX weights_of(uint j, uint s) {
  uvec2 row_a, row_b;
  four(uvec2(w_[j][s], 0u), affine_of_half(j, s >> 1), row_a, row_b);
  B_MATRIX b;
  const uvec4 words = uvec4(row_a, row_b);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    const f16vec2 both = unpackFloat2x16(words[e]);
    b[2u * e] = both.x;
    b[2u * e + 1u] = both.y;
  }
  return b;
}

A_MATRIX rows_of(uint a_row, uint i, uint s) {
  A_MATRIX a;
  coopMatLoad(a, shared_, (a_row + i * 16u) * ROW + 2u * s, ROW, gl_CooperativeMatrixLayoutRowMajor);
  return a;
}

#if defined(X_split)
// Where a row has several scales, the columns that share one (a run) are summed apart.
void multiply_tile(uint buffer_row) {
  const uint a_row = buffer_row + gl_SubgroupID / SUBGROUPS_N * WM, steps = GROUP % 64u == 0u ? 4u : 2u;
  [[unroll]] for (uint run = 0u; run < 4u / steps; ++run) {
    C_MATRIX sum[MATRICES_M * PANELS];
    [[unroll]] for (uint i = 0u; i < MATRICES_M * PANELS; ++i) sum[i] = GROUP == 0u ? sum_[i] : C_MATRIX(0.0);
    [[unroll]] for (uint s = run * steps; s < (run + 1u) * steps; ++s) {
      B_MATRIX b[PANELS];
      [[unroll]] for (uint j = 0u; j < PANELS; ++j) b[j] = weights_of(j, s);
      [[unroll]] for (uint part = 0u; part < PARTS; ++part) {
        [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
          const A_MATRIX a = rows_of(a_row + part * BM, i, s);
          [[unroll]] for (uint j = 0u; j < PANELS; ++j) sum[i * PANELS + j] = coopMatMulAdd(a, b[j], sum[i * PANELS + j]);
        }
        [[unroll]] for (uint j = 0u; j < PANELS; ++j) b[j] = b[j] * float16_t(0.00048828125);  // exact
      }
    }
    [[unroll]] for (uint i = 0u; i < MATRICES_M * PANELS; ++i) {
      if (GROUP == 0u) {
        sum_[i] = sum[i];
        continue;
      }
      const uvec4 scales = scale_now_[2u * (i % PANELS) + run];
      const vec2 even = scale_of(scales.xy), odd = scale_of(scales.zw);
      const vec4 scale = vec4(even.x, odd.x, even.y, odd.y);  // of columns 2t, 2t + 1, 2t + 8, 2t + 9 (vulkan/probe.h)
      [[unroll]] for (uint e = 0u; e < 8u; ++e) sum_[i][e] = fma(sum[i][e], scale[e & 3u], sum_[i][e]);
    }
  }
}
#else
void multiply_tile(uint buffer_row) {
  const uint a_row = buffer_row + gl_SubgroupID / SUBGROUPS_N * WM;
  [[unroll]] for (uint s = 0u; s < 4u; ++s) {
    A_MATRIX a[MATRICES_M];
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) a[i] = rows_of(a_row, i, s);
    [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
      const B_MATRIX b = weights_of(j, s);
      [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
        sum_[i * PANELS + j] = coopMatMulAdd(a[i], b, sum_[i * PANELS + j]);
    }
  }
}
#endif

void main() {
  if (group() >= params.row_blocks * ((N + BN - 1u) / BN)) return;  // the whole workgroup
  if (lane() == 0u) shared_[0].x = exponent_;
  barrier();
  exponent_ = shared_[0].x;
  barrier();
  clear_sums();
  load_tile(0u);
  turn_over();
  store_x(0u);
  barrier();
  // Of few tiles a driver would write them all out, and take longer to compile them; they run no faster.
  [[dont_unroll]] for (uint tile = 0u; tile < TILES; ++tile) {
    const uint now = BUFFERS == 2u ? (tile & 1u) * BUFFER_ROWS : 0u, then = BUFFERS == 2u ? BUFFER_ROWS - now : 0u;
    load_tile(min(tile + 1u, TILES - 1u));  // the last one twice, so that there is no branch
    multiply_tile(now);
    turn_over();
    if (BUFFERS == 1u) barrier();
    store_x(then);
    barrier();
  }
  store_sums();
}
