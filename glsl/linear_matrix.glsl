// SPDX-License-Identifier: Apache-2.0
// x . w^T for many rows of x (the formula is in linear/linear.glslh), by cooperative matrices of any shape. x and the weights,
// unpacked to fp16, are copied to shared memory in chunks of 32 columns (half a tile of linear/packed.glslh) while the next chunk
// is loaded into registers. There is one buffer with two barriers a chunk: two workgroups on a multiprocessor hide each other's
// barriers, and would not fit with two buffers. A workgroup computes BM x BN outputs, a subgroup WM x WN.
//   X halves  x, the output and weights that are real are fp16
//   X split   they are fp32; x comes as two fp16 for each element, the second counts 2^-11 (linear_split.glsl); so are weights made
//             here (linear/split_weights.glslh)
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual; WEIGHT q4, q8, X split: 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant X halves split
#pragma variant WEIGHT q4 q8 real
#include "linear/operand_parts.glslh"
#if defined(WEIGHT_real) && defined(SPLIT)
#define WEIGHT_f32 1
#elif defined(WEIGHT_real)
#define WEIGHT_f16 1
#endif
#include "linear/matrix.glslh"

#define ROW 5u  // uvec4 of a row in shared memory: 32 fp16 and 8 of padding, so that eight rows lie in different banks
#define X_LOADS (BM * 4u / LANES)  // of a part
#define W_LOADS (BN * 2u / LANES)  // lanes of packed row panels
#define B_ROWS (PARTS * BM)        // the first shared row of the weights

#if defined(WEIGHT_f32)
#define W_VECTORS 4u
#elif defined(WEIGHT_f16)
#define W_VECTORS 2u  // of a lane in half a tile
#else
#define W_VECTORS 1u
#endif
uvec4 x_next_[PARTS * X_LOADS], w_next_[W_LOADS * W_VECTORS];
Affine affine_[W_LOADS];

// The loads of an invocation are whole rows or row panels apart (LANES is a multiple of 32), which keeps their addresses simple.
// The row of x of load r; its half8 is lane % 4. Eight neighbours store to eight different banks.
uint x_row(uint r) {
  const uint e = lane();
  return (e >> 5) * 8u + ((e >> 2) & 1u) * 4u + ((e >> 3) & 3u) + r * (LANES / 4u);
}
// The row panel of load r, and lane 4g + t in it.
uint w_panel(uint r) { return (lane() >> 5) + r * (LANES / 32u); }
uint w_lane() {
  const uint e = lane();
  return ((e >> 2) & 1u) * 16u + ((e >> 3) & 3u) * 4u + (e & 3u);
}
#include "linear/split_weights.glslh"

void load_chunk(uint tile, uint h) {
  [[unroll]] for (uint r = 0u; r < PARTS * X_LOADS; ++r) {
    const uint row = within_m(first_m() + x_row(r % X_LOADS)) * PARTS + r / X_LOADS;
    x_next_[r] = load_half8(row, tile * 8u + h * 4u + (lane() & 3u));
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint panel = within_n(first_n() / 16u + w_panel(r)), l = w_lane(), base = (panel * TILES + tile) * VECTORS * 32u + l;
#if defined(WEIGHT_q4)
    if (h == 0u) w_next_[r] = weight_[base];
#elif defined(WEIGHT_q8)
    w_next_[r] = weight_[base + h * 32u];
#elif defined(WEIGHT_f32)
    [[unroll]] for (uint v = 0u; v < 4u; ++v) w_next_[4u * r + v] = weight_[base + (4u * h + v) * 32u];
#else
    w_next_[2u * r] = weight_[base + 2u * h * 32u];
    w_next_[2u * r + 1u] = weight_[base + (2u * h + 1u) * 32u];
#endif
    affine_[r] = affine_of(panel, l >> 2, tile * 64u + h * 32u + (l & 3u) * 8u);
#if defined(SPLIT) && defined(QUANTIZED)
    if (GROUP != 0u) scale_next_[r] = scale_words(pair_of(panel, l >> 2, tile * 64u + h * 32u));
#endif
  }
}

void store_chunk(uint h) {
  [[unroll]] for (uint r = 0u; r < PARTS * X_LOADS; ++r) {
    shared_[(r / X_LOADS * BM + x_row(r % X_LOADS)) * ROW + (lane() & 3u)] = x_next_[r];
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint l = w_lane();
    uvec4 a, b;
#if defined(WEIGHT_f32)
    uvec4 high[2], low[2];
    const uvec4 w[4] = {w_next_[4u * r], w_next_[4u * r + 1u], w_next_[4u * r + 2u], w_next_[4u * r + 3u]};
    split_rows(w, power_[r], high, low);
    a = high[0];
    b = high[1];
#elif defined(WEIGHT_f16)
    a = uvec4(w_next_[2u * r].xy, w_next_[2u * r + 1u].xy);
    b = uvec4(w_next_[2u * r].zw, w_next_[2u * r + 1u].zw);
#else
    uvec2 a0, a1, b0, b1;
#if defined(WEIGHT_q4)
    const uvec2 first = uvec2(w_next_[r][2u * h], 0u), second = uvec2(w_next_[r][2u * h + 1u], 0u);
#else
    const uvec2 first = w_next_[r].xy, second = w_next_[r].zw;
#endif
    four(first, affine_[r], a0, b0);
    four(second, affine_[r], a1, b1);
    a = uvec4(a0, a1);
    b = uvec4(b0, b1);
#endif
    const uint row = B_ROWS + w_panel(r) * 16u + (l >> 2);
    shared_[row * ROW + (l & 3u)] = a;
    shared_[(row + 8u) * ROW + (l & 3u)] = b;
#if defined(WEIGHT_f32)
    shared_[(row + BN) * ROW + (l & 3u)] = low[0];
    shared_[(row + BN + 8u) * ROW + (l & 3u)] = low[1];
#elif defined(SPLIT)
    if (GROUP != 0u && (l & 3u) == 0u) store_scales(row - B_ROWS, scale_of(scale_next_[r]));
#endif
  }
}

#if defined(SPLIT)
#include "linear/split_sums.glslh"
#else
#include "linear/halves_sums.glslh"
#endif

void main() {
  if (group() >= params.row_blocks * ((N + BN - 1u) / BN)) return;  // the whole workgroup
#ifdef QUANTIZED
  if (lane() == 0u) shared_[0].x = exponent_;
  barrier();
  exponent_ = shared_[0].x;
  barrier();
#endif
  clear_sums();
#if defined(SPLIT)
  begin_split();
#endif
  load_chunk(0u, 0u);
  for (uint tile = 0u; tile < TILES; ++tile) {
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
      store_chunk(h);
      barrier();
      if (h == 0u) load_chunk(tile, 1u);
      else load_chunk(min(tile + 1u, TILES - 1u), 0u);  // the last one twice, so that there is no branch
      multiply_chunk();
      barrier();
    }
  }
#if defined(SPLIT)
  join_sums();
#endif
  store_sums();
}
