// SPDX-License-Identifier: Apache-2.0
// x . w^T for few rows of x (the formula is in linear/linear.glslh): a workgroup reads PANELS row panels of 16 weight rows once and
// multiplies them with ROWS rows of x. Slots of 32 lanes take the tiles of the row panels in turn; a lane owns two weight rows and
// 16 columns of a tile (linear/packed.glslh). So the sums of a weight row are spread over LANES / 8 lanes, which add them through
// shared memory at the end.
//
// Of one row x may be the result of a norm (linear/rms_norm.glslh); a GATED product has two row panels (linear/epilogue.glslh).
//
// Rounding: fp32; a lane adds 4 products a step in order, then the group's sum times the scale; LANES / 8 partial sums are added
// in order. |err| <= 2^-24 * (K / (LANES / 8) + LANES / 8 + 20) * sum|x w| before the result is rounded to the output's type.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual; WEIGHT q4, q8: 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8 f16 f32
#pragma variant STORAGE buffer texture3d
#pragma variant WEIGHT_STORAGE buffer texture2d
#include "linear/linear.glslh"

layout(constant_id = 10) const uint ROWS = 1u;
layout(constant_id = 12) const uint PANELS = 1u;  // row panels of a workgroup: x is loaded once for all of them
layout(constant_id = 11) const uint DEPTH = 1u;  // tiles whose weights and scales are prefetched while one is multiplied
layout(constant_id = 14) const bool GATED = false;
#if defined(STORAGE_buffer)
#define NORM_ID 13
#include "linear/rms_norm.glslh"
#define X_OF(row, k) UNPACK_X(NORM != 0u ? normed_word((k) >> 2) : load_x(row, k))
#else
layout(constant_id = 13) const uint NORM = 0u;
#define X_OF(row, k) UNPACK_X(load_x(row, k))
#endif

#define SLOTS (LANES / 32u)
#define PARTS (LANES / 8u)
#ifdef QUANTIZED
shared uvec4 exponents_shared_;
#endif
shared float sums_[ROWS * PANELS * LANES * 2u];  // [row of x][row panel][part][16 weight rows]

// Prefetched: the first vectors of a tile of each row panel and, where a lane's columns have one scale, its scale and zero
// words.
uvec4 prefetched_[DEPTH * PANELS * LIVE];
#ifdef QUANTIZED
#define RUNS (GROUP % 64u == 0u ? 1u : 2u)  // scales a lane needs of a tile, where it does not need one for each step
uvec2 prefetched_scale_[DEPTH * PANELS * RUNS];
uint prefetched_zero_[DEPTH * PANELS * RUNS];
#endif

// Row panel j of those that begin with `first`; past the end, the last one again.
uint panel_at(uint first, uint j) { return min(first + j, (params.n - 1u) / 16u); }

// Prefetches tile `tile` of the row panels; past the end, the last one again (a branch would make the loads wait for each other).
void prefetch(uint d, uint first_panel, uint tile, uint l) {
  const uint at = min(tile, params.tiles - 1u);
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    const uint panel = panel_at(first_panel, j), place = d * PANELS + j;
    uvec4 w[LIVE];
    fetch(w, panel * params.tiles + at, l, 0u);
    [[unroll]] for (uint i = 0u; i < LIVE; ++i) prefetched_[place * LIVE + i] = w[i];
#ifdef QUANTIZED
    if (SCALE_STEPS != 1u) {
      [[unroll]] for (uint run = 0u; run < RUNS; ++run) {
        const uint pair = pair_of(panel, l >> 2, at * 64u + column_of(l & 3u, 2u * run));
        prefetched_scale_[place * RUNS + run] = scale_words(pair);
        if (HAS_ZERO != 0u) prefetched_zero_[place * RUNS + run] = zero_[pair];
      }
    }
#endif
  }
}

void multiply_add(inout float sum, vec4 a, vec4 b) { sum = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum)))); }

float sum_a_[ROWS * PANELS], sum_b_[ROWS * PANELS];

// Multiplies tile `tile` of the row panels, which is in place d, and prefetches the next one for that place.
void multiply_tile(uint d, uint first_panel, uint tile, uint first_row, uint l) {
  uvec4 all[PANELS * LIVE];
  vec2 zero[PANELS];
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    [[unroll]] for (uint i = 0u; i < LIVE; ++i) all[j * LIVE + i] = prefetched_[(d * PANELS + j) * LIVE + i];
    zero[j] = vec2(0.0);
  }
#ifdef QUANTIZED
  vec2 scale[PANELS];
  uvec2 scale_now[PANELS * RUNS];
  uint zero_now[PANELS * RUNS];
  [[unroll]] for (uint i = 0u; i < PANELS * RUNS; ++i) {
    scale_now[i] = prefetched_scale_[d * PANELS * RUNS + i];
    zero_now[i] = prefetched_zero_[d * PANELS * RUNS + i];
  }
#endif
  prefetch(d, first_panel, tile + SLOTS * DEPTH, l);
  const uint k = tile * 64u;
  float part_a[ROWS * PANELS], part_b[ROWS * PANELS];
  [[unroll]] for (uint r = 0u; r < ROWS * PANELS; ++r) part_a[r] = part_b[r] = 0.0;
  [[unroll]] for (uint s = 0u; s < 4u; ++s) {
    vec4 x[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) x[r] = X_OF(first_row + r, k + column_of(l & 3u, s));
    [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
#ifdef QUANTIZED
      if (SCALE_STEPS == 1u) {
        const uint pair = pair_of(panel_at(first_panel, j), l >> 2, k + column_of(l & 3u, s));
        scale[j] = scale_of(scale_words(pair));
        zero[j] = load_zero(pair);
      } else if (s % SCALE_STEPS == 0u) {
        const uint i = j * RUNS + s / SCALE_STEPS;
        scale[j] = scale_of(scale_now[i]);
        zero[j] = HAS_ZERO != 0u ? unpackHalf2x16(zero_now[i]) : vec2(PLAIN_ZERO);
      }
#endif
      uvec4 w[LIVE];
      [[unroll]] for (uint i = 0u; i < LIVE; ++i) w[i] = all[j * LIVE + i];
      if (s != 0u && FETCH_AT(s)) fetch(w, panel_at(first_panel, j) * params.tiles + tile, l, s);
      vec4 a, b;
      unpack(w, zero[j], a, b);
      [[unroll]] for (uint i = 0u; i < LIVE; ++i) all[j * LIVE + i] = w[i];
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        const uint p = r * PANELS + j;
        multiply_add(part_a[p], x[r], a);
        multiply_add(part_b[p], x[r], b);
#ifdef QUANTIZED
        if ((s + 1u) % SCALE_STEPS == 0u) {
          sum_a_[p] = fma(part_a[p], scale[j].x, sum_a_[p]);
          sum_b_[p] = fma(part_b[p], scale[j].y, sum_b_[p]);
          part_a[p] = part_b[p] = 0.0;
        }
#endif
      }
    }
  }
#ifndef QUANTIZED
  [[unroll]] for (uint p = 0u; p < ROWS * PANELS; ++p) {
    sum_a_[p] += part_a[p];
    sum_b_[p] += part_b[p];
  }
#endif
}

// The sums of vec4 group q of the row and row panel p.
vec4 sum_of(uint p, uint q) {
  const uint base = p * PARTS * 16u + q * 4u;
  return vec4(sums_[base], sums_[base + 1u], sums_[base + 2u], sums_[base + 3u]);
}

void main() {
  const uint block = group() / params.row_blocks, panel = block * PANELS;
  const uint first_row = (group() - block * params.row_blocks) * ROWS;
  if (panel * 16u >= params.n) return;  // the whole workgroup
  const uint l = lane() & 31u, slot = lane() >> 5;
  const uint g = l >> 2, t = l & 3u;

  [[unroll]] for (uint r = 0u; r < ROWS * PANELS; ++r) sum_a_[r] = sum_b_[r] = 0.0;
  [[unroll]] for (uint d = 0u; d < DEPTH; ++d) prefetch(d, panel, slot + d * SLOTS, l);
#if defined(STORAGE_buffer)
  if (NORM != 0u) norm_row();
#endif
#ifdef QUANTIZED
  if (lane() == 0u) exponents_shared_ = exponents_;
  barrier();
  exponents_ = exponents_shared_;
#endif
  for (uint tile = slot; tile < params.tiles; tile += SLOTS * DEPTH) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      if (tile + d * SLOTS < params.tiles) multiply_tile(d, panel, tile + d * SLOTS, first_row, l);
    }
  }

  const uint part = slot * 4u + t;
  [[unroll]] for (uint p = 0u; p < ROWS * PANELS; ++p) {
    sums_[(p * PARTS + part) * 16u + g] = sum_a_[p];
    sums_[(p * PARTS + part) * 16u + g + 8u] = sum_b_[p];
  }
  barrier();
  for (uint i = lane(); i < ROWS * PANELS * 16u; i += LANES) {
    const uint base = (i >> 4) * PARTS * 16u + (i & 15u);
    float sum = sums_[base];
    for (uint p = 1u; p < PARTS; ++p) sum += sums_[base + p * 16u];
    sums_[base] = sum;  // no other invocation reads it
  }
  barrier();
  for (uint i = lane(); i < ROWS * (GATED ? 1u : PANELS) * 4u; i += LANES) {
    const uint p = (i >> 2) * (GATED ? 2u : 1u), row = first_row + p / PANELS, n = (panel + p % PANELS) * 16u + (i & 3u) * 4u;
    if (row >= params.m || n >= params.n) continue;
    if (GATED) store_gated(row, n, sum_of(p, i & 3u), sum_of(p + 1u, i & 3u));
    else store_vec4(row, n, sum_of(p, i & 3u));
  }
}
