// SPDX-License-Identifier: Apache-2.0
// Integer products for many rows of x (the formula is in linear/linear_int8.glslh), four columns an instruction: a workgroup
// computes BM x BN outputs from tiles of 64 columns in shared memory, an invocation TM x TN of them in registers;
// LANES = (BM / TM) * (BN / TN), TN a multiple of 4.
// A row of a tile is four uvec4 in the order of the packed words (.xy is the first half of the columns, .zw the second), and a
// fifth one that keeps eight rows in different banks. Word t of the fifth holds the byte sums of uvec4 t, one for each half.
// Weight rows are permuted (slot()), so that an invocation's outputs are neighbouring columns and the rows that it reads follow
// each other.
//
// Rounding: the sum of a group's columns in a tile is exact; its product with the scale is added in fp32. Rows with one scale
// are summed in integers throughout.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero; OUT bytes: out_scale, out_zero; then rows, weight sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_integer_dot_product : require
#pragma variant OUT f32 f16 bytes
#pragma variant WEIGHT q4 q8
#pragma variant WEIGHT_STORAGE buffer texture2d
#define X_PARAMS
#include "linear/linear_int8.glslh"

layout(set = 0, binding = 1) readonly buffer X { uvec4 x_[]; };  // linear_quantize.glsl
layout(set = 0, binding = ROWS_BINDING) readonly buffer Rows { uvec4 rows_[]; };
layout(set = 0, binding = ROWS_BINDING + 1) readonly buffer Sums { ivec2 weight_sums_[]; };

layout(constant_id = 12) const uint BM = 64u;
layout(constant_id = 13) const uint BN = 64u;
layout(constant_id = 14) const uint TM = 8u;
layout(constant_id = 15) const uint TN = 4u;

#define ROW 5u
#define RUNS (GROUP % 64u == 0u ? 1u : 2u)  // scales of a tile's row
#define LEAST (TM * TN < 16u)  // for the fewest registers, which do not hold what compilers load ahead of unrolled runs and steps
#define WHOLE (TM * TN >= 16u && GROUP % 64u == 0u)  // a step takes whole uvec4, not halves
#define LANES_N (BN / TN)
#define LANES_M (BM / TM)
#define X_LOADS ((BM * 4u + LANES - 1u) / LANES)
#define W_LOADS ((BN * 2u + LANES - 1u) / LANES)  // lanes of packed row panels
#include "linear/byte_sums.glslh"

shared uvec4 a_[BM * ROW], b_[BN * ROW];
shared vec4 scale4_[2u * BN / 4u];  // [run][column]
shared ivec4 zero4_[2u * BN / 4u];

uvec4 x_next_[X_LOADS], w_next_[W_LOADS * VECTORS];
uvec2 scale_next_[W_LOADS * RUNS];
ivec2 zero_next_[W_LOADS * RUNS];
int whole_[TM * TN];  // of the run at hand, or of the row
float sum_[TM * TN];

#if defined(OUT_bytes)
shared vec2 to_[BM];  // output_of() a row: once, as its code is long

void find_outputs(uint first_m) {
  for (uint i = lane(); i < BM; i += LANES) to_[i] = output_of(min(first_m + i, params.m - 1u));
}
#endif

uint lane_n() { return lane() % LANES_N; }
uint lane_m() { return lane() / LANES_N; }
uint slot(uint row) { return (row & 3u) * (BN / 4u) + (row >> 2); }

// A weight row's scale and zero point of a run.
void load_scale_of(uint r, uint run, uint panel, uint tile, uint l) {
  const uint pair = pair_of(panel, l >> 2, tile * 64u + run * 32u);
  scale_next_[r * RUNS + run] = scale_words(pair);
  if (HAS_ZERO != 0u) zero_next_[r * RUNS + run] = whole_zero(pair);
}

uint panel_at(uint first_n, uint e) { return min(first_n / 16u + (e >> 5), (params.n - 1u) / 16u); }

void load_tile(uint tile, uint first_m, uint first_n) {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES, row = params.first_m + min(first_m + (e >> 2), params.m - 1u);
    x_next_[r] = x_[(tile * params.words_m + row) * 4u + (e & 3u)];
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, l = e & 31u, panel = panel_at(first_n, e);
    const uint base = (panel * TILES + tile) * VECTORS * 32u + l;
    [[unroll]] for (uint v = 0u; v < VECTORS; ++v) w_next_[r * VECTORS + v] = WEIGHT_AT(base + v * 32u);
    if (GROUP != 0u && !LEAST) {
      [[unroll]] for (uint run = 0u; run < RUNS; ++run) load_scale_of(r, run, panel, tile, l);
    }
  }
}

// With LEAST what is of a scale is loaded here.
void store_tile(uint tile, uint first_n) {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    if (e < BM * 4u) {
      a_[(e >> 2) * ROW + (e & 3u)] = x_next_[r];
      if (GROUP != 0u && HAS_ZERO != 0u) a_[(e >> 2) * ROW + 4u][e & 3u] = half_sums(x_next_[r]);
    }
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, t = e & 3u, row = (e >> 5) * 16u + ((e & 31u) >> 2);
    ivec2 step_[4];
    [[unroll]] for (uint s = 0u; s < 4u; ++s) step_[s] = signed_bytes(w_next_[r * VECTORS + s * VECTORS / 4u], s);
    const uvec4 a = uvec4(step_[0].x, step_[1].x, step_[2].x, step_[3].x);
    const uvec4 b = uvec4(step_[0].y, step_[1].y, step_[2].y, step_[3].y);
    if (e < BN * 2u) {
      b_[slot(row) * ROW + t] = a;
      b_[slot(row + 8u) * ROW + t] = b;
      if (GROUP != 0u) {
        if (HAS_ROW_ZERO != 0u) {
          b_[slot(row) * ROW + 4u][t] = half_sums(a);
          b_[slot(row + 8u) * ROW + 4u][t] = half_sums(b);
        }
        [[unroll]] for (uint run = 0u; run < RUNS; ++run) {
          if (t != run) continue;
          if (LEAST) load_scale_of(r, run, panel_at(first_n, e), tile, e & 31u);
          const vec2 scale = scale_of(scale_next_[r * RUNS + run]);
          const uint at = run * BN + row;
          scale4_[at >> 2][at & 3u] = scale.x;
          scale4_[(at >> 2) + 2u][at & 3u] = scale.y;
          if (HAS_ZERO != 0u) {
            zero4_[at >> 2][at & 3u] = zero_next_[r * RUNS + run].x;
            zero4_[(at >> 2) + 2u][at & 3u] = zero_next_[r * RUNS + run].y;
          }
        }
      }
    }
  }
}

uint b_row(uint j) { return ((j & 3u) * (BN / 4u) + (j >> 2) * LANES_N + lane_n()) * ROW; }
uint a_row(uint i) { return (i * LANES_M + lane_m()) * ROW; }

void multiply_step(uint half_, uint t) {
  uvec4 b[TN];
  [[unroll]] for (uint j = 0u; j < TN; ++j) {
    if (WHOLE) b[j] = b_[b_row(j) + t];
    else b[j].xy = half_ == 0u ? b_[b_row(j) + t].xy : b_[b_row(j) + t].zw;
  }
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    uvec4 a;
    if (WHOLE) a = a_[a_row(i) + t];
    else a.xy = half_ == 0u ? a_[a_row(i) + t].xy : a_[a_row(i) + t].zw;
    [[unroll]] for (uint j = 0u; j < TN; ++j) {
      const uint at = i * TN + j;
      whole_[at] += dotPacked4x8EXT(int(a.x), int(b[j].x));
      whole_[at] += dotPacked4x8EXT(int(a.y), int(b[j].y));
      if (WHOLE) {
        whole_[at] += dotPacked4x8EXT(int(a.z), int(b[j].z));
        whole_[at] += dotPacked4x8EXT(int(a.w), int(b[j].w));
      }
    }
  }
}

// A loop: Mesa's compilers load the words of all unrolled steps first, where they can, and spill them on RDNA and Intel's GPUs.
void multiply_run(uint run) {
  if (LEAST && GROUP % 64u == 0u) {
    [[dont_unroll]] for (uint i = 0u; i < 8u; ++i) multiply_step(i & 1u, i >> 1);
  } else {
    [[dont_unroll]] for (uint t = 0u; t < 4u; ++t) multiply_step(run, t);
  }
}

// Adds the integer sums of a tile's run of columns to the fp32 sums.
void scale_run(uint run, int row_zero[TM]) {
  int x_sum[TM];
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    if (HAS_ZERO != 0u) x_sum[i] = sum_of(a_[a_row(i) + 4u], run) - row_zero[i] * int(64u / RUNS);
  }
  [[unroll]] for (uint j = 0u; j < TN; ++j) {
    const uint column = run * BN + 4u * ((j >> 2) * LANES_N + lane_n());
    const float scale = scale4_[column >> 2][j & 3u];
    const int weight_sum = HAS_ROW_ZERO != 0u ? sum_of(b_[b_row(j) + 4u], run) : 0;
    [[unroll]] for (uint i = 0u; i < TM; ++i) {
      const uint at = i * TN + j;
      if (HAS_ROW_ZERO != 0u) whole_[at] -= row_zero[i] * weight_sum;
      if (HAS_ZERO != 0u) whole_[at] -= zero4_[column >> 2][j & 3u] * x_sum[i];
      sum_[at] = fma(float(whole_[at]), scale, sum_[at]);
      whole_[at] = 0;
    }
  }
}

// A loop where registers are few: with both runs unrolled, compilers hold the zero points of both at once.
void multiply_tile(int row_zero[TM]) {
  if (TM * TN <= 16u) {
    [[dont_unroll]] for (uint run = 0u; run < RUNS; ++run) {
      multiply_run(run);
      if (GROUP != 0u) scale_run(run, row_zero);
    }
  } else {
    [[unroll]] for (uint run = 0u; run < RUNS; ++run) {
      multiply_run(run);
      if (GROUP != 0u) scale_run(run, row_zero);
    }
  }
}

// For rows with one scale: the real numbers of four columns' integer sums, without the scale of x's row.
vec4 real_vec4(ivec4 whole, uint n, uvec4 row) {
  vec4 scale;
  [[unroll]] for (uint c = 0u; c < 4u; ++c) {
    const uint pair = ((n + c) >> 4) * 8u + ((n + c) & 7u), half_ = ((n + c) >> 3) & 1u;
    scale[c] = load_scale(pair)[half_];
    if (HAS_ROW_ZERO != 0u) whole[c] -= int(row.y) * weight_sums_[pair][half_] * UNIT;
    if (HAS_ZERO != 0u) whole[c] -= int(row.z) * whole_zero(pair)[half_];
  }
  return vec4(whole) * scale;
}

// The sums of row i of an invocation, columns 4j .. 4j+3, as bits; `i` is not known to the compiler, and yet no register is addressed.
uvec4 sums_of(uint i, uint j) {
  uvec4 found = uvec4(0u);
  [[unroll]] for (uint other = 0u; other < TM; ++other) {
    const uint at = other * TN + 4u * j;
    const vec4 v = vec4(sum_[at], sum_[at + 1u], sum_[at + 2u], sum_[at + 3u]);
    const ivec4 whole = ivec4(whole_[at], whole_[at + 1u], whole_[at + 2u], whole_[at + 3u]);
    found = other == i ? (GROUP == 0u ? uvec4(whole) : floatBitsToUint(v)) : found;
  }
  return found;
}

void main() {
  const uint column_block = group() / params.row_blocks;
  const uint first_m = (group() - column_block * params.row_blocks) * BM, first_n = column_block * BN;
  if (first_n >= params.n) return;  // the whole workgroup
  int row_zero[TM];
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    row_zero[i] = int(rows_[params.first_m + min(first_m + i * LANES_M + lane_m(), params.m - 1u)].y);
  }
  [[unroll]] for (uint i = 0u; i < TM * TN; ++i) {
    whole_[i] = 0;
    sum_[i] = 0.0;
  }

  load_tile(0u, first_m, first_n);
#if defined(OUT_bytes)
  find_outputs(first_m);  // the loop has a barrier
#endif
  for (uint tile = 0u; tile < TILES; ++tile) {
    store_tile(tile, first_n);
    barrier();
    if (tile + 1u < TILES) load_tile(tile + 1u, first_m, first_n);
    multiply_tile(row_zero);
    barrier();
  }

  // A loop: what stores 64 results is so much code that drivers take a second for it.
  [[dont_unroll]] for (uint i = 0u; i < TM; ++i) {
    const uint m = first_m + i * LANES_M + lane_m();
    const uvec4 row = rows_[params.first_m + min(m, params.m - 1u)];
    [[unroll]] for (uint j = 0u; j < TN / 4u; ++j) {
      const uint n = first_n + 4u * (j * LANES_N + lane_n());
      const uvec4 sums = sums_of(i, j);
      if (m < params.m && n < params.n) {
        vec4 v = GROUP == 0u ? real_vec4(ivec4(sums), n, row) : uintBitsToFloat(sums);
        v *= uintBitsToFloat(row.x) / float(UNIT);
#if defined(OUT_bytes)
        store_bytes(m, n, v, to_[m - first_m]);
#else
        store_real(m, n, v);
#endif
      }
    }
  }
}
