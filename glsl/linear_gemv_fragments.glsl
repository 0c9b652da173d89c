// SPDX-License-Identifier: Apache-2.0
// x . w^T for few rows of x (the formula is in linear/linear.glslh), by cooperative matrices whose elements are in the lanes that
// vulkan/probe.h expects. A packed step is then a matrix of 16 weight rows as it is. Up to 8 rows of x are the columns of the
// other matrix, so 8 rows cost as much as 1. A workgroup has PANELS row panels and BLOCKS * 8 rows of x; slots of 32 lanes take the
// tiles in turn.
//
// Of one row x may be the result of a norm, which the workgroup then computes first (linear/rms_norm.glslh). A GATED product has two
// row panels, a gate and what it is multiplied with (linear/epilogue.glslh).
//
// Weights enter the product as whole numbers, zero points subtracted; the sums of a group are scaled in fp32. x is fp16. DTYPE f32:
// the output of an x that was quantized from fp32, or that is to be requantized.
//
// X  whole  rows of x have whole tiles of columns
//    tail8  a multiple of 8 columns, or there is one row
//    tail   any number of columns
//
// Rounding: products are exact, sums fp32: |err| <= 2^-23 * (K / SLOTS + SLOTS + 20) * sum|x w| before the result is rounded to
// fp16 (2^-23: matrix units may truncate where others round).
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual; WEIGHT q4, q8: 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#pragma variant DTYPE f16 f32
#pragma variant WEIGHT q4 q8 f16
#pragma variant X whole tail8 tail
#define FIXED_SIZES
#define X_HALF8
#include "linear/linear.glslh"
#include "core/unaligned.glslh"
#include "linear/fp16_weights.glslh"

layout(constant_id = 12) const uint PANELS = 1u;  // of 16 weight rows a workgroup takes
layout(constant_id = 13) const uint BLOCKS = 1u;  // of 8 rows of x
layout(constant_id = 14) const uint LIVE_ROWS = 8u;  // of the only block; 8 where there are more
layout(constant_id = 16) const bool GATED = false;
#if defined(DTYPE_f16)
#define NORM_ID 15
#include "linear/rms_norm.glslh"
#else  // x is not of DTYPE, and never normed
layout(constant_id = 15) const uint NORM = 0u;
void norm_row() {}
uvec2 normed_word(uint q) { return uvec2(0u); }
#endif

#define SLOTS (LANES / 32u)
#define W_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define X_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define SUM_MATRIX coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>
#define FLUSHES (GROUP % 64u == 0u ? 1u : 2u)  // times a tile's sums are scaled

shared float sums_[PANELS * BLOCKS * LIVE_ROWS * SLOTS * 16u];  // [row panel][row of x][slot][weight row]

// The tile to be multiplied. The next one is loaded as soon as these registers are free. More tiles in flight were slower, as
// fewer workgroups then fit on a multiprocessor (H200, 4096 -> 28672: 23.3 us with one, 26.0 with two, 27.1 with four).
uvec4 w_[PANELS * VECTORS], x_[BLOCKS * 2u];
#ifdef QUANTIZED
uvec2 scale_words_[PANELS * FLUSHES];
uint zero_words_[PANELS * FLUSHES];
#endif
float total_[PANELS * BLOCKS * 4u];

// Past the end: the last one; its results are not stored again.
uint panel_at(uint first, uint j) { return N % (16u * PANELS) == 0u ? first + j : min(first + j, (N - 1u) / 16u); }

// Prefetches a tile of the row panels and of x; past the end, the last one again.
void prefetch(uint first_panel, uint first_row, uint tile, uint l) {
  const uint at = min(tile, TILES - 1u);
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    [[unroll]] for (uint v = 0u; v < VECTORS; ++v) {
      w_[j * VECTORS + v] = weight_[((panel_at(first_panel, j) * TILES + at) * VECTORS + v) * 32u + l];
    }
#ifdef QUANTIZED
    [[unroll]] for (uint f = 0u; f < FLUSHES; ++f) {
      const uint pair = pair_of(panel_at(first_panel, j), l >> 2, at * 64u + f * 32u);
      if (GROUP != 0u) scale_words_[j * FLUSHES + f] = scale_words(pair);
      if (HAS_ZERO != 0u) zero_words_[j * FLUSHES + f] = zero_[pair];
    }
#endif
  }
  if (NORM != 0u) return;
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    const uint row = min(first_row + b * 8u + (l >> 2), params.m - 1u);
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
      const uint o = at * 8u + h * 4u + (l & 3u);
#if defined(X_whole)
      x_[b * 2u + h] = x8_[row * (K / 8u) + o];
#elif defined(X_tail8)
      x_[b * 2u + h] = x8_[row * ((K + 7u) / 8u) + min(o, (K - 1u) / 8u)];
#else
      const uint first = row * K + o * 8u, last = (params.m * K - 1u) / 8u, at_first = min(first / 8u, last);
      x_[b * 2u + h] = unaligned_half8(x8_[at_first], x8_[min(at_first + 1u, last)], first & 7u);
#endif
    }
  }
#if !defined(X_whole)
  if (tile == TILES - 1u) {  // only for the last tile: this waits for the loads
    [[unroll]] for (uint i = 0u; i < BLOCKS * 2u; ++i) {
      const uint k = min(at * 64u + (i & 1u) * 32u + (l & 3u) * 8u, K);
      x_[i] = first_of_half8(x_[i], min(K - k, 8u));
    }
  }
#endif
}

X_MATRIX x_matrix(uvec2 words) {
  const f16vec2 low = unpackFloat2x16(words.x), high = unpackFloat2x16(words.y);
  X_MATRIX x;
  x[0] = low.x;
  x[1] = low.y;
  x[2] = high.x;
  x[3] = high.y;
  return x;
}

// `words`: two of row g, then two of row g + 8.
W_MATRIX w_matrix(uvec4 words) {
  W_MATRIX w;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const f16vec2 both = unpackFloat2x16(words[i]);
    w[2u * i] = both.x;
    w[2u * i + 1u] = both.y;
  }
  return w;
}

#ifdef QUANTIZED
struct Zeros {  // of rows g (x) and g + 8 (y), see linear/fp16_weights.glslh
  f16vec2 low, high;
};
Zeros zero_of(f16vec2 stored) { return Zeros(float16_t(1024.0) + stored, float16_t(64.0) + stored); }

// Step s of row panel j as a matrix.
W_MATRIX step_of(uint j, uint s, Zeros zero) {
#if defined(WEIGHT_q4)
  const uvec2 u = uvec2(w_[j][s], w_[j][s] >> 8), low = u & 0x000f000fu, high = u & 0x00f000f0u;
  return w_matrix(uvec4(packFloat2x16(integers(low.x, zero.low.xx)), packFloat2x16(integers(low.y, zero.low.xx)),
                        packFloat2x16(high_integers(high.x, zero.high.yy)),
                        packFloat2x16(high_integers(high.y, zero.high.yy))));
#else
  const uvec4 both = w_[j * VECTORS + (s >> 1)];
  const uvec2 words = (s & 1u) == 0u ? both.xy : both.zw;
  const uvec4 u = uvec4(words.x, words.x >> 8, words.y, words.y >> 8) & 0x00ff00ffu;
  return w_matrix(uvec4(packFloat2x16(integers(u.x, zero.low.xx)), packFloat2x16(integers(u.y, zero.low.xx)),
                        packFloat2x16(integers(u.z, zero.low.yy)), packFloat2x16(integers(u.w, zero.low.yy))));
#endif
}
#endif

// The half8 of a lane for both halves of tile `tile`, of a row that the norm made.
void normed_tile(uint tile, uint l) {
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    const uint q = (tile * 8u + h * 4u + (l & 3u)) * 2u;
    x_[h] = uvec4(normed_word(q), normed_word(q + 1u));
  }
}

void multiply_tile() {
  [[unroll]] for (uint f = 0u; f < FLUSHES; ++f) {
    [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
      vec2 scale = vec2(1.0);
#ifdef QUANTIZED
      const uint at = j * FLUSHES + f;
      const Zeros zero = zero_of(HAS_ZERO != 0u ? unpackFloat2x16(zero_words_[at]) : f16vec2(PLAIN_ZERO));
      if (GROUP != 0u) scale = scale_of(scale_words_[at]);
#endif
      SUM_MATRIX sum[BLOCKS];
      [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) sum[b] = SUM_MATRIX(0.0);
      [[unroll]] for (uint i = 0u; i < 4u / FLUSHES; ++i) {
        const uint s = f * 2u + i;
#ifdef QUANTIZED
        const W_MATRIX w = step_of(j, s, zero);
#else
        const W_MATRIX w = w_matrix(w_[j * VECTORS + s]);
#endif
        [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
          const uvec4 half8 = x_[b * 2u + (s >> 1)];
          sum[b] = coopMatMulAdd(w, x_matrix((s & 1u) == 0u ? half8.xy : half8.zw), sum[b]);
        }
      }
      [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
        [[unroll]] for (uint e = 0u; e < 4u; ++e) {
          const uint i = (j * BLOCKS + b) * 4u + e;
          total_[i] = fma(sum[b][e], scale[e >> 1], total_[i]);
        }
      }
    }
  }
}

// Where the sums of one row of x and row panel j are.
uint sums_at(uint j, uint row, uint slot) { return ((j * BLOCKS * LIVE_ROWS + row) * SLOTS + slot) * 16u; }

// The sum over all slots of weight rows q .. q+3 of row panel first + j.
vec4 sum_of(uint first, uint j, uint row, uint q) {
  vec4 v = vec4(0.0);
  for (uint p = 0u; p < SLOTS; ++p) {
    const uint at = sums_at(j, row, p) + q;
    v += vec4(sums_[at], sums_[at + 1u], sums_[at + 2u], sums_[at + 3u]);
  }
#ifdef QUANTIZED
  if (GROUP == 0u) v *= late_scale((first + j) * 16u + q);
#endif
  return v;
}

void main() {
  const uint block = group() / params.row_blocks, panel = block * PANELS;
  const uint first_row = (group() - block * params.row_blocks) * BLOCKS * 8u;
  if (panel * 16u >= N) return;  // the whole workgroup
  const uint l = lane() & 31u, slot = lane() >> 5;
#ifdef QUANTIZED
  exponent_ |= l * params.row_blocks >> 31;  // adds 0, as there are fewer than 2^26 row blocks, but the compiler does not know it
#endif

  [[unroll]] for (uint i = 0u; i < PANELS * BLOCKS * 4u; ++i) total_[i] = 0.0;
  prefetch(panel, first_row, slot, l);
  if (NORM != 0u) norm_row();
  for (uint tile = slot; tile < TILES; tile += SLOTS) {
    if (NORM != 0u) normed_tile(tile, l);
    multiply_tile();
    prefetch(panel, first_row, tile + SLOTS, l);
  }

  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
      [[unroll]] for (uint e = 0u; e < 4u; ++e) {
        const uint row = (l & 3u) * 2u + (e & 1u), n = (l >> 2) + (e >> 1) * 8u;
        if (row < LIVE_ROWS) sums_[sums_at(j, b * 8u + row, slot) + n] = total_[(j * BLOCKS + b) * 4u + e];
      }
    }
  }
  barrier();
  for (uint i = lane(); i < (GATED ? 1u : PANELS) * BLOCKS * LIVE_ROWS * 4u; i += LANES) {
    const uint j = i / (BLOCKS * LIVE_ROWS * 4u), row = (i >> 2) % (BLOCKS * LIVE_ROWS), q = (i & 3u) * 4u;
    const uint m = first_row + row, n = (panel + j) * 16u + q;
    if (m >= params.m || n >= N) continue;
    const vec4 v = sum_of(panel, j, row, q);
    if (GATED) store_gated(m, n, v, sum_of(panel, 1u, row, q));
    else store_vec4(m, n, v);
  }
}
