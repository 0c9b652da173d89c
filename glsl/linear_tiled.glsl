// SPDX-License-Identifier: Apache-2.0
// x . w^T for many rows of x (the formula is in linear/linear.glslh): linear/gemm.glslh with the weights unpacked to fp32 on the
// way to shared memory. A chunk is one step of a tile of linear/packed.glslh; the next chunk is loaded into registers before the
// products of this one. A workgroup computes BM x BN outputs.
// Rounding: that of linear/gemm.glslh, and two more roundings for each (w - zero) * scale.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual; WEIGHT q4, q8: 5 scale, 6 zero, 7 rows.
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
#define GEMM_SPEC 10
#include "linear/linear.glslh"
#if defined(QUANTIZED)
#define GEMM_BLOCKS
#define GEMM_STEPS 1u  // H200, tile64x128, 2048 x 14336 x 4096, int4 of 32, fp16 and fp32: 6284 us and 6602; with 2 7119 and 6950
#else
#define GEMM_STEPS 2u  // H100, with fp32 weights, 512 and 2048 x 4096 x 4096: 466 and 1847, with 4 465 and 1847; 595 and 2160 with 1
#endif
#include "linear/gemm.glslh"

#define X_LOADS ((BM * 4u + LANES - 1u) / LANES)  // vec4 groups of x that an invocation loads for a chunk
#define W_LOADS ((BN * 2u + LANES - 1u) / LANES)  // lanes of packed row panels
X_WORD x_next_[X_LOADS];
uvec4 w_next_[W_LOADS * LIVE];
vec2 scale_next_[W_LOADS], zero_next_[W_LOADS];

// The row panel and the lane in it of load r; past the end, the last panel, whose results are not stored again.
uint panel_of(uint r, uint first_n) { return min(first_n / 16u + ((lane() + r * LANES) >> 5), (params.n - 1u) / 16u); }
uint lane_of(uint r) { return (lane() + r * LANES) & 31u; }

void load_chunk(uint chunk, uint first_m, uint first_n) {
  const uint tile = chunk >> 2, s = chunk & 3u;
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    x_next_[r] = load_x(first_m + (e >> 2), tile * 64u + column_of(e & 3u, s));
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint l = lane_of(r), panel = panel_of(r, first_n);
    if (FETCH_AT(s)) {
      uvec4 w[LIVE];
      fetch(w, panel * params.tiles + tile, l, s);
      [[unroll]] for (uint i = 0u; i < LIVE; ++i) w_next_[r * LIVE + i] = w[i];
    }
#ifdef QUANTIZED
    if (s % SCALE_STEPS == 0u) {
      const uint pair = pair_of(panel, l >> 2, tile * 64u + column_of(l & 3u, s));
      scale_next_[r] = load_scale(pair);
      zero_next_[r] = load_zero(pair);
    }
#endif
  }
}

void store_chunk() {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    if (e < BM * 4u) a_tile_[a_vec4(e >> 2, e & 3u)] = UNPACK_X(x_next_[r]);
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, row = (e >> 5) * 16u + ((e & 31u) >> 2);
    uvec4 w[LIVE];
    [[unroll]] for (uint i = 0u; i < LIVE; ++i) w[i] = w_next_[r * LIVE + i];
    vec4 a, b;
    unpack(w, zero_next_[r], a, b);
    [[unroll]] for (uint i = 0u; i < LIVE; ++i) w_next_[r * LIVE + i] = w[i];
#ifdef QUANTIZED
    a *= scale_next_[r].x;
    b *= scale_next_[r].y;
#endif
    if (e < BN * 2u) {
      b_tile_[b_vec4(row, e & 3u)] = a;
      b_tile_[b_vec4(row + 8u, e & 3u)] = b;
    }
  }
}

void main() {
  const uint column_block = group() / params.row_blocks;
  const uint first_m = (group() - column_block * params.row_blocks) * BM;
  const uint first_n = column_block * BN;
  if (first_n >= params.n) return;  // the whole workgroup

  clear_sums();
  load_chunk(0u, first_m, first_n);
  const uint chunks = params.tiles * 4u;
  for (uint chunk = 0u; chunk < chunks; ++chunk) {
    store_chunk();
    barrier();
    if (chunk + 1u < chunks) load_chunk(chunk + 1u, first_m, first_n);
    multiply_chunk();
    barrier();
  }

#if defined(QUANTIZED)
  // Code for one group of outputs, not for sixteen. A driver would write out what it can count, but not up to params.m.
  const uint outputs = min(TM * TN / 4u, params.m + TM * TN / 4u);
  [[dont_unroll]] for (uint p = 0u; p < outputs; ++p) {
    const vec4 v = next_output_vec4();
    const uint m = first_m + output_row(p / (TN / 4u)), n = first_n + output_column(p % (TN / 4u));
    if (m < params.m && n < params.n) store_vec4(m, n, v);
  }
#else
  // As that loop: H200, tile64x128, fp32 weights, 512 and 2048 x 4096 x 4096, 467 -> 556 us and 1861 -> 2046.
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    const uint m = first_m + output_row(i);
    if (m < params.m) {
      [[unroll]] for (uint j = 0u; j < TN / 4u; ++j) {
        const uint n = first_n + output_column(j);
        if (n < params.n) store_vec4(m, n, output_vec4(i, j));
      }
    }
  }
#endif
}
