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

layout(constant_id = 8) const uint ROWS = 1u;

#define SLOTS (LANES / 32u)
#define PARTS (LANES / 8u)
shared float sums_[ROWS * LANES * 2u];  // [row of x][part][16 weight rows]

void multiply_add(inout float sum, vec4 a, vec4 b) { sum = fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum)))); }

void main() {
  const uint strip = group() / params.row_blocks;
  const uint first_row = (group() - strip * params.row_blocks) * ROWS;
  if (strip * 16u >= params.n) return;  // the whole workgroup
  const uint l = lane() & 31u, slot = lane() >> 5;
  const uint g = l >> 2, t = l & 3u;

  float sum_a[ROWS], sum_b[ROWS];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) sum_a[r] = sum_b[r] = 0.0;

  uvec4 w[LIVE];
  uvec4 next[LIVE];
  const uint first_tile = strip * params.tiles;
  if (slot < params.tiles) fetch(next, first_tile + slot, l, 0u);
  for (uint tile = slot; tile < params.tiles; tile += SLOTS) {
    w = next;
    if (tile + SLOTS < params.tiles) fetch(next, first_tile + tile + SLOTS, l, 0u);
    const uint k = tile * 64u + t * 16u;
    vec2 zero = vec2(0.0);
    float part_a[ROWS], part_b[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) part_a[r] = part_b[r] = 0.0;
#ifdef QUANTIZED
    vec2 scale;
    if (GROUP % 16u == 0u) {
      const uint pair = pair_of(strip, g, k);
      scale = load_scale(pair);
      zero = load_zero(pair);
    }
#endif
    [[unroll]] for (uint s = 0u; s < 4u; ++s) {
#ifdef QUANTIZED
      if (GROUP % 16u != 0u) {
        const uint pair = pair_of(strip, g, k + 4u * s);
        scale = load_scale(pair);
        zero = load_zero(pair);
      }
#endif
      if (s != 0u && FETCH_AT(s)) fetch(w, first_tile + tile, l, s);
      vec4 a, b;
      unpack(w, zero, a, b);
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        const vec4 x = UNPACK(DTYPE, load_x(first_row + r, k + 4u * s));
        multiply_add(part_a[r], x, a);
        multiply_add(part_b[r], x, b);
#ifdef QUANTIZED
        if (GROUP % 16u != 0u) {
          sum_a[r] = fma(part_a[r], scale.x, sum_a[r]);
          sum_b[r] = fma(part_b[r], scale.y, sum_b[r]);
          part_a[r] = part_b[r] = 0.0;
        }
#endif
      }
    }
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
#ifdef QUANTIZED
      if (GROUP % 16u == 0u) {
        sum_a[r] = fma(part_a[r], scale.x, sum_a[r]);
        sum_b[r] = fma(part_b[r], scale.y, sum_b[r]);
      }
#else
      sum_a[r] += part_a[r];
      sum_b[r] += part_b[r];
#endif
    }
  }

  const uint part = slot * 4u + t;
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    sums_[(r * PARTS + part) * 16u + g] = sum_a[r];
    sums_[(r * PARTS + part) * 16u + g + 8u] = sum_b[r];
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
