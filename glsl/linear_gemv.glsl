// SPDX-License-Identifier: Apache-2.0
// x . w^T for few rows of x: a workgroup reads one strip of 16 weight rows once and multiplies it with ROWS rows of x.
// Slots of 32 lanes take the tiles of the strip in turn; a lane owns two weight rows and 16 columns of a tile (packed.glslh),
// so the sums of a weight row are spread over LANES / 8 lanes, which meet in shared memory at the end.
//
// Rounding: fp32; a lane adds 4 products a step in order, then the group's sum times the scale; LANES / 8 partial sums are added
// in order. |err| <= 2^-24 * (K / (LANES / 8) + LANES / 8 + 20) * sum|x w| before the result is rounded to the output's type.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8 f16 f32
#include "linear.glslh"

layout(constant_id = 9) const uint ROWS = 1u;
layout(constant_id = 10) const uint DEPTH = 1u;  // tiles whose weights and scales are on their way while one is multiplied

#define SLOTS (LANES / 32u)
#define PARTS (LANES / 8u)
#ifdef QUANTIZED
shared uint zero_shared_;
#endif
shared float sums_[ROWS * LANES * 2u];  // [row of x][part][16 weight rows]

// What is on its way: the first vectors of a tile and, where a lane's columns have one scale, its scale and zero words.
uvec4 coming_[DEPTH * LIVE];
#ifdef QUANTIZED
uvec2 coming_scale_[DEPTH];
uint coming_zero_[DEPTH];
#endif

// Asks for tile `tile` of the strip, the last one again past the end (a branch would make the loads wait for each other).
void ask(uint d, uint strip, uint tile, uint l) {
  const uint at = min(tile, params.tiles - 1u);
  uvec4 w[LIVE];
  fetch(w, strip * params.tiles + at, l, 0u);
  [[unroll]] for (uint i = 0u; i < LIVE; ++i) coming_[d * LIVE + i] = w[i];
#ifdef QUANTIZED
  if (GROUP % 16u == 0u) {
    const uint pair = pair_of(strip, l >> 2, at * 64u + (l & 3u) * 16u);
    coming_scale_[d] = scale_words(pair);
    if (HAS_ZERO != 0u) coming_zero_[d] = zero_[pair];
  }
#endif
}

void multiply_add(inout float sum, vec4 a, vec4 b) { sum = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum)))); }

float sum_a_[ROWS], sum_b_[ROWS];

// Multiplies tile `tile`, which is at place d, and asks for the one that takes its place.
void multiply_tile(uint d, uint strip, uint tile, uint first_row, uint l) {
  uvec4 w[LIVE];
  [[unroll]] for (uint i = 0u; i < LIVE; ++i) w[i] = coming_[d * LIVE + i];
#ifdef QUANTIZED
  vec2 scale = scale_of(coming_scale_[d]);
  vec2 zero = HAS_ZERO != 0u ? unpackHalf2x16(coming_zero_[d]) : vec2(PLAIN_ZERO);
#else
  const vec2 zero = vec2(0.0);
#endif
  ask(d, strip, tile + SLOTS * DEPTH, l);
  const uint k = tile * 64u + (l & 3u) * 16u;
  float part_a[ROWS], part_b[ROWS];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) part_a[r] = part_b[r] = 0.0;
  [[unroll]] for (uint s = 0u; s < 4u; ++s) {
#ifdef QUANTIZED
    if (GROUP % 16u != 0u) {
      const uint pair = pair_of(strip, l >> 2, k + 4u * s);
      scale = scale_of(scale_words(pair));
      zero = load_zero(pair);
    }
#endif
    if (s != 0u && FETCH_AT(s)) fetch(w, strip * params.tiles + tile, l, s);
    vec4 a, b;
    unpack(w, zero, a, b);
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const vec4 x = UNPACK(DTYPE, load_x(first_row + r, k + 4u * s));
      multiply_add(part_a[r], x, a);
      multiply_add(part_b[r], x, b);
#ifdef QUANTIZED
      if (GROUP % 16u != 0u) {
        sum_a_[r] = fma(part_a[r], scale.x, sum_a_[r]);
        sum_b_[r] = fma(part_b[r], scale.y, sum_b_[r]);
        part_a[r] = part_b[r] = 0.0;
      }
#endif
    }
  }
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
#ifdef QUANTIZED
    if (GROUP % 16u == 0u) {
      sum_a_[r] = fma(part_a[r], scale.x, sum_a_[r]);
      sum_b_[r] = fma(part_b[r], scale.y, sum_b_[r]);
    }
#else
    sum_a_[r] += part_a[r];
    sum_b_[r] += part_b[r];
#endif
  }
}

void main() {
  const uint strip = group() / params.row_blocks;
  const uint first_row = (group() - strip * params.row_blocks) * ROWS;
  if (strip * 16u >= params.n) return;  // the whole workgroup
  const uint l = lane() & 31u, slot = lane() >> 5;
  const uint g = l >> 2, t = l & 3u;

  [[unroll]] for (uint r = 0u; r < ROWS; ++r) sum_a_[r] = sum_b_[r] = 0.0;
  [[unroll]] for (uint d = 0u; d < DEPTH; ++d) ask(d, strip, slot + d * SLOTS, l);
#ifdef QUANTIZED
  if (lane() == 0u) zero_shared_ = 0u;
  barrier();
  hidden_zero_ = zero_shared_;
#endif
  for (uint tile = slot; tile < params.tiles; tile += SLOTS * DEPTH) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      if (tile + d * SLOTS < params.tiles) multiply_tile(d, strip, tile + d * SLOTS, first_row, l);
    }
  }

  const uint part = slot * 4u + t;
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    sums_[(r * PARTS + part) * 16u + g] = sum_a_[r];
    sums_[(r * PARTS + part) * 16u + g + 8u] = sum_b_[r];
  }
  barrier();
  for (uint i = lane(); i < ROWS * 16u; i += LANES) {
    const uint base = (i >> 4) * PARTS * 16u + (i & 15u);
    float sum = sums_[base];
    for (uint p = 1u; p < PARTS; ++p) sum += sums_[base + p * 16u];
    sums_[base] = sum;  // only this invocation read it
  }
  barrier();
  for (uint i = lane(); i < ROWS * 4u; i += LANES) {
    const uint row = first_row + (i >> 2), n = strip * 16u + (i & 3u) * 4u;
    const uint base = (i >> 2) * PARTS * 16u + (i & 3u) * 4u;
    if (row < params.m && n < params.n) {
      store_quad(row, n, vec4(sums_[base], sums_[base + 1u], sums_[base + 2u], sums_[base + 3u]));
    }
  }
}
