// SPDX-License-Identifier: Apache-2.0
// Integer products for many rows of x, by cooperative matrices of signed bytes with 32-bit sums, of any shape: TM x TN x TK. For
// weights with one scale a row: the sums are exact, and everything else happens once, at the end.
// BM x BN outputs a workgroup, WM x WN a subgroup. x and the weights meet in shared memory, a tile of 64 columns at a time, in
// the order of the packed words; the next DEPTH tiles are on their way meanwhile. One buffer: two workgroups then share a
// multiprocessor and hide each other's barriers, which a second buffer in its place does not.
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
#include "linear_int8.glslh"

layout(set = 0, binding = 1) readonly buffer X { uvec4 x_[]; };  // linear_quantize.glsl
layout(set = 0, binding = ROWS_BINDING) readonly buffer Rows { uvec4 rows_[]; };
layout(set = 0, binding = ROWS_BINDING + 1) readonly buffer Sums { ivec2 weight_sums_[]; };

layout(constant_id = 12) const uint BM = 32u;
layout(constant_id = 13) const uint BN = 32u;
layout(constant_id = 14) const uint WM = 16u;
layout(constant_id = 15) const uint WN = 16u;
layout(constant_id = 16) const uint TM = 8u;
layout(constant_id = 17) const uint TN = 8u;
layout(constant_id = 18) const uint TK = 8u;
layout(constant_id = 19) const uint SHARED = 1024u;  // uvec4 of shared memory
layout(constant_id = 20) const uint DEPTH = 1u;      // tiles on their way

#define SUBGROUPS_N (BN / WN)
#define SUBGROUP (LANES / (BM / WM * SUBGROUPS_N))  // invocations
#define MATRICES_M (WM / TM)
#define MATRICES_N (WN / TN)
#define A_MATRIX coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define B_MATRIX coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define C_MATRIX coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

// A row of a tile in shared memory: 64 bytes in uvec4 (half filled where matrices have 8 columns), and one of padding, so that
// eight rows lie in different banks.
#define CELLS (TK == 8u ? 8u : 4u)
#define ROW (CELLS + 1u)
#define X_LOADS (BM * 4u / LANES)
#define W_LOADS (BN * 2u / LANES)  // lanes of packed strips

shared uvec4 shared_[SHARED];
C_MATRIX sum_[MATRICES_M * MATRICES_N];
uvec4 x_next_[DEPTH * X_LOADS], w_next_[DEPTH * W_LOADS * VECTORS];

// Which row of a tile of x load e is, and which lane of a strip: eight neighbours store to eight different banks.
uint x_row(uint e) { return (e >> 5) * 8u + ((e >> 2) & 1u) * 4u + ((e >> 3) & 3u); }
uint strip_lane(uint e) { return ((e >> 2) & 1u) * 16u + ((e >> 3) & 3u) * 4u + (e & 3u); }

void load_tile(uint d, uint tile, uint first_m, uint first_n) {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES, row = params.first_m + min(first_m + x_row(e), params.m - 1u);
    x_next_[d * X_LOADS + r] = x_[(tile * params.words_m + row) * 4u + (e & 3u)];
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, strip = min(first_n / 16u + (e >> 5), (params.n - 1u) / 16u);
    const uint base = (strip * TILES + tile) * VECTORS * 32u + strip_lane(e & 31u);
    [[unroll]] for (uint v = 0u; v < VECTORS; ++v) w_next_[(d * W_LOADS + r) * VECTORS + v] = weight_[base + v * 32u];
  }
}

void put(uint row, uint t, uvec4 words) {
  if (TK == 8u) {
    shared_[row * ROW + 2u * t] = uvec4(words.xy, 0u, 0u);
    shared_[row * ROW + 2u * t + 1u] = uvec4(words.zw, 0u, 0u);
  } else {
    shared_[row * ROW + t] = words;
  }
}

void store_tile(uint d) {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    put(x_row(e), e & 3u, x_next_[d * X_LOADS + r]);
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, l = strip_lane(e & 31u), row = BM + (e >> 5) * 16u + (l >> 2);
    const uint first = (d * W_LOADS + r) * VECTORS;
    ivec2 step_[4];
    [[unroll]] for (uint s = 0u; s < 4u; ++s) step_[s] = signed_bytes(w_next_[first + s * VECTORS / 4u], s);
    put(row, l & 3u, uvec4(step_[0].x, step_[1].x, step_[2].x, step_[3].x));
    put(row + 8u, l & 3u, uvec4(step_[0].y, step_[1].y, step_[2].y, step_[3].y));
  }
}

void multiply_tile() {
  const uint a_row = gl_SubgroupID / SUBGROUPS_N * WM, b_row = BM + gl_SubgroupID % SUBGROUPS_N * WN;
  [[unroll]] for (uint k = 0u; k < 64u / TK; ++k) {
    const uint cell = TK == 8u ? k : k * TK / 16u;
    A_MATRIX a[MATRICES_M];
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      coopMatLoad(a[i], shared_, (a_row + i * TM) * ROW + cell, ROW, gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
      B_MATRIX b;
      coopMatLoad(b, shared_, (b_row + j * TN) * ROW + cell, ROW, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
        sum_[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sum_[i * MATRICES_N + j]);
      }
    }
  }
}

// What four columns of the weight bring to the end of a product.
struct Columns {
  vec4 scale;
  ivec4 sum, zero;
};

Columns columns_at(uint n) {
  Columns c = Columns(vec4(0.0), ivec4(0), ivec4(0));
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uint pair = min((n + i) >> 4, (params.n - 1u) >> 4) * 8u + ((n + i) & 7u), half_ = ((n + i) >> 3) & 1u;
    c.scale[i] = load_scale(pair)[half_] / float(UNIT);
    if (HAS_ROW_ZERO != 0u) c.sum[i] = weight_sums_[pair][half_] * UNIT;
    if (HAS_ZERO != 0u) c.zero[i] = whole_zero(pair)[half_];
  }
  return c;
}

#define QUADS_N (WN / 4u)
#define PITCH (QUADS_N + 2u)  // uvec4 of a row of sums: four rows of a matrix then lie in different banks
#define ROWS_AT_ONCE (SUBGROUP > QUADS_N ? SUBGROUP / QUADS_N : 1u)
#define PASSES ((TM + ROWS_AT_ONCE - 1u) / ROWS_AT_ONCE)

// The sums to the output through shared memory, TM rows of a subgroup at a time; everybody is done with shared_.
void store_sums(uint first_m, uint first_n) {
  const uint l = gl_SubgroupInvocationID, stage = gl_SubgroupID * TM * PITCH;
  const uint m = first_m + gl_SubgroupID / SUBGROUPS_N * WM, n = first_n + gl_SubgroupID % SUBGROUPS_N * WN;
  for (uint q = l % QUADS_N; q < QUADS_N; q += SUBGROUP) {  // once, unless subgroups are small
    const Columns c = columns_at(n + 4u * q);
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      const uint row = m + i * TM + l / QUADS_N;
      uvec4 x[PASSES];  // all on their way before the first output is stored
      [[unroll]] for (uint p = 0u; p < PASSES; ++p) {
        x[p] = rows_[params.first_m + min(row + p * ROWS_AT_ONCE, params.m - 1u)];
      }
      [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
        coopMatStore(sum_[i * MATRICES_N + j], shared_, stage + j * TN / 4u, PITCH, gl_CooperativeMatrixLayoutRowMajor);
      }
      subgroupMemoryBarrierShared();
      subgroupBarrier();
      for (uint p = 0u; p < PASSES; ++p) {
        const uint r = l / QUADS_N + p * ROWS_AT_ONCE;
        if (r < TM && row + p * ROWS_AT_ONCE < params.m && n + 4u * q < params.n) {
          ivec4 whole = ivec4(shared_[stage + r * PITCH + q]);
          if (HAS_ROW_ZERO != 0u) whole -= int(x[p].y) * c.sum;
          if (HAS_ZERO != 0u) whole -= int(x[p].z) * c.zero;
          store_real(row + p * ROWS_AT_ONCE, n + 4u * q, vec4(whole) * c.scale * uintBitsToFloat(x[p].x));
        }
      }
      subgroupMemoryBarrierShared();
      subgroupBarrier();
    }
  }
}

void main() {
  const uint column_block = group() / params.row_blocks;
  const uint first_m = (group() - column_block * params.row_blocks) * BM, first_n = column_block * BN;
  if (first_n >= params.n) return;  // the whole workgroup
  [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sum_[i] = C_MATRIX(0);
  [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
    if (d < TILES) load_tile(d, d, first_m, first_n);
  }
  for (uint first = 0u; first < TILES; first += DEPTH) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      if (TILES % DEPTH == 0u || first + d < TILES) {
        store_tile(d);
        barrier();
        if (first + d + DEPTH < TILES) load_tile(d, first + d + DEPTH, first_m, first_n);
        multiply_tile();
        barrier();
      }
    }
  }
  store_sums(first_m, first_n);
}
