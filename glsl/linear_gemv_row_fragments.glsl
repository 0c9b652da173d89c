// SPDX-License-Identifier: Apache-2.0
// x . w^T for one row of x (the formula is in linear/linear.glslh), by cooperative matrices whose elements are in the lanes that
// vulkan/probe.h expects, as linear/gemv_fragments.glslh. A workgroup has PANELS row panels, each of its own SLOTS subgroups, and
// fills a multiprocessor: it brings x into shared memory once for all of them, so that a subgroup only loads weights. Of many row
// panels it takes PANELS several times, by subgroups that have one each. In fp16, x may be the result of an rms norm, which the
// workgroup computes (linear/rms_norm.glslh); a GATED product has gates in even row panels, what they are multiplied with in odd ones.
//
// All columns of the matrix of x are the row, so all lanes of a weight row have its sums, and each loads and applies the scales of
// one tile and group. fp32: columns are the high and the low parts in turn (math/split.glslh), with a power of two for 256 columns:
//   x[k] = (high + low * 2^-11) * down[k / 256]
//
// Rounding: as linear/gemv_fragments.glslh, with X pairs of fp32.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant DTYPE f16 f32
#pragma variant WEIGHT q4 q8
#define FIXED_SIZES
#define X_HALF8
#include "linear/linear.glslh"
#include "linear/fragments.glslh"
#if defined(DTYPE_f32)
#include "math/math.glslh"
#include "math/split_16.glslh"
#endif

layout(constant_id = 12) const uint PANELS = 1u;      // of 16 weight rows a workgroup takes at once
layout(constant_id = 13) const uint DEPTH = 1u;       // pairs of tiles that a subgroup has in flight
layout(constant_id = 14) const uint WORKGROUPS = 1u;  // of a row of x
layout(constant_id = 15) const bool GATED = false;

#define SLOTS (LANES / 32u / PANELS)           // subgroups of a row panel; 1 where there are REPEATS
#define FLUSHES (GROUP % 64u == 0u ? 1u : 2u)  // times a tile's sums are scaled
#define TURN_TILES (2u * SLOTS * DEPTH)
#define TURNS ((TILES + TURN_TILES - 1u) / TURN_TILES)  // of DEPTH pairs of tiles of a subgroup
#define AT_ONCE (WORKGROUPS * PANELS)                   // row panels
#define REPEATS (((N + 15u) / 16u + AT_ONCE - 1u) / AT_ONCE)
#define BATCHES ((K + 255u) / 256u)  // of columns that a subgroup brings at once
#define ROUNDS ((BATCHES + LANES / 32u - 1u) / (LANES / 32u))

// APART: the last turn is written out, so that nothing is loaded after it. H200, int4 in groups of 32, 4096 -> 14336, us in one
// loop and so: fp32 13.3, 13.1; fp16 12.3, 12.8.
#if defined(DTYPE_f32)
#define LATE_SUMS
#define APART (REPEATS == 1u)
#define TILE_WORDS 16u  // uvec4s of a tile: two halves, high and low parts, four lanes
shared float downs_[BATCHES];
#else
#define APART false
#define TILE_WORDS 8u  // two halves, four lanes
#endif
shared uvec4 tiles_[TILES * TILE_WORDS];

// Pairs of tiles to be multiplied. The next pair is loaded as soon as registers are free.
uvec4 w_[DEPTH * 2u * VECTORS];
uvec2 scale_words_[DEPTH];
uint zero_words_[DEPTH * 2u * FLUSHES];
float total_[2];  // of weight rows l / 4 and l / 4 + 8, what this lane scaled

// The end of the workgroup (linear/gemv_end.glslh), of one row without layer norms.
#define BLOCKS 1u
#define COLUMNS 1u
#define LIVE_ROWS 1u
#define OWN_SUMS
#define RESIDUAL_NORM LAYER_NORM_NONE
WORD(DTYPE) normed_residual(uint r, uint n, WORD(DTYPE) word) { return word; }
#include "linear/gemv_end.glslh"

#if defined(DTYPE_f16)
#define NORM_ID 16
#define NORM_ROWS 1u
#define PUT_NORMED(row, q, word) \
  if (((q) & 1u) == 0u) tiles_[(q) >> 1].xy = word; \
  else tiles_[(q) >> 1].zw = word
#include "linear/rms_norm.glslh"
#else
#define NORM 0u
void norm_rows() {}
#endif

// The tile and the group of it whose sums a lane scales: tile * FLUSHES + group.
uint own(uint l) { return l & (2u * FLUSHES - 1u); }
uint tile_at(uint slot, uint turn, uint j) { return slot + (2u * turn + j) * SLOTS; }
bool has_tile(uint tile) { return TILES % TURN_TILES == 0u || tile < TILES; }

// Pair d of a subgroup; past the end, the last tile again.
void prefetch(uint panel, uint slot, uint turn, uint d, uint l) {
  if (GROUP != 0u) {
    const uint tile = min(tile_at(slot, turn, own(l) / FLUSHES), TILES - 1u);
    scale_words_[d] = scale_words(pair_of(panel, l >> 2, tile * 64u + own(l) % FLUSHES * 32u));
  }
  [[unroll]] for (uint j = 0u; j < 2u; ++j) {
    const uint tile = min(tile_at(slot, turn, j), TILES - 1u);
    [[unroll]] for (uint v = 0u; v < VECTORS; ++v) {
      w_[(2u * d + j) * VECTORS + v] = weight_[((panel * TILES + tile) * VECTORS + v) * 32u + l];
    }
    if (HAS_ZERO != 0u) {
      [[unroll]] for (uint f = 0u; f < FLUSHES; ++f) {
        zero_words_[(2u * d + j) * FLUSHES + f] = zero_[pair_of(panel, l >> 2, tile * 64u + f * 32u)];
      }
    }
  }
}

// Eight columns of a lane.
#if defined(DTYPE_f32)
#define X_VECTORS 2u
#else
#define X_VECTORS 1u
#endif
uvec4 x_[X_VECTORS];

void prefetch_x(uint row, uint batch, uint l) {
  const uint at = row * (K / 8u) + min(batch * 32u + l, K / 8u - 1u);
  [[unroll]] for (uint i = 0u; i < X_VECTORS; ++i) x_[i] = x8_[at * X_VECTORS + i];
}

// All lanes of a subgroup at once.
void put_x(uint batch, uint l) {
  const uint octet = batch * 32u + l, at = (octet >> 3) * TILE_WORDS + ((octet >> 2) & 1u) * (TILE_WORDS / 2u) + (octet & 3u);
#if defined(DTYPE_f32)
  const vec4 x[2] = vec4[2](uintBitsToFloat(x_[0]), uintBitsToFloat(x_[1]));
  // Beside Inf and NaN it matters of no number what it is.
  const int up = min(row_power(subgroupMax(max(largest_of(x[0]), largest_of(x[1])))), 112);
  uvec2 high[2], low[2];
  [[unroll]] for (uint i = 0u; i < 2u; ++i) split_quick(x[i], power_of_2(up), params.row_blocks >> 31, high[i], low[i]);
  if (batch < BATCHES && l == 0u) downs_[batch] = power_of_2(LATE_UNIT_EXPONENT - up);
  if (octet < K / 8u) {
    tiles_[at] = uvec4(high[0], high[1]);
    tiles_[at + 4u] = uvec4(low[0], low[1]);
  }
#else
  if (octet < K / 8u) tiles_[at] = x_[0];
#endif
}

// The whole row, whose first batches were prefetched.
void put_row(uint subgroup, uint l) {
  put_x(subgroup, l);
  [[unroll]] for (uint i = 1u; i < ROUNDS; ++i) {
    prefetch_x(X_ROW(0u), subgroup + i * (LANES / 32u), l);
    put_x(subgroup + i * (LANES / 32u), l);
  }
  barrier();
}

// Half h of a tile, as this lane's column of a matrix has it.
uvec4 x_half(uint tile, uint h, uint l) {
#if defined(DTYPE_f32)
  return tiles_[tile * 16u + h * 8u + ((l >> 2) & 1u) * 4u + (l & 3u)];
#else
  return tiles_[tile * 8u + h * 4u + (l & 3u)];
#endif
}

// Step s of a tile as a matrix.
W_MATRIX step_of(uint j, uint s, Zeros zero) {  // j: 2 d + j
#if defined(WEIGHT_q4)
  return q4_matrix(w_[j][s], zero);
#else
  return q8_matrix(w_[j * VECTORS + (s >> 1)], s, zero);
#endif
}

void multiply(uint slot, uint turn, uint d, uint l) {
  vec4 chosen = vec4(0.0);
  [[unroll]] for (uint j = 0u; j < 2u; ++j) {
    const uint tile = tile_at(slot, turn, j);
    if (!has_tile(tile)) continue;
    const uvec4 x[2] = uvec4[2](x_half(tile, 0u, l), x_half(tile, 1u, l));
    [[unroll]] for (uint f = 0u; f < FLUSHES; ++f) {
      const Zeros zero = zero_of(HAS_ZERO != 0u ? unpackFloat2x16(zero_words_[(2u * d + j) * FLUSHES + f]) : f16vec2(PLAIN_ZERO));
      SUM_MATRIX sum = SUM_MATRIX(0.0);
      [[unroll]] for (uint i = 0u; i < 4u / FLUSHES; ++i) {
        const uint s = f * 2u + i;
        const uvec4 half8 = x[s >> 1];
        sum = coopMatMulAdd(step_of(2u * d + j, s, zero), x_matrix((s & 1u) == 0u ? half8.xy : half8.zw), sum);
      }
      if (own(l) == j * FLUSHES + f) chosen = vec4(sum[0], sum[1], sum[2], sum[3]);
    }
  }
  const uint tile = tile_at(slot, turn, own(l) / FLUSHES);
  if (!has_tile(tile)) return;
  const vec2 scale = GROUP != 0u ? scale_of(scale_words_[d]) : vec2(1.0);
#if defined(DTYPE_f32)
  const float down = downs_[tile >> 2];
  total_[0] = fma(fma(chosen.y, LOW_UNIT, chosen.x) * scale.x, down, total_[0]);  // the scale first: linear/gemv_fragments.glslh
  total_[1] = fma(fma(chosen.w, LOW_UNIT, chosen.z) * scale.y, down, total_[1]);
#else
  total_[0] = fma(chosen.x, scale.x, total_[0]);
  total_[1] = fma(chosen.z, scale.y, total_[1]);
#endif
}

void put_row_sums(uint which, uint slot, uint l) {
  [[unroll]] for (uint e = 0u; e < 2u; ++e) {
    float sum = total_[e] + subgroupShuffleXor(total_[e], 1u);
    if (FLUSHES == 2u) sum += subgroupShuffleXor(sum, 2u);
    const uint n = l >> 2;
    if ((l & 3u) == 0u) sums_[sums_at(which, slot, 0u) + (n >> 2) + 2u * e][n & 3u] = sum;
  }
}

// Row panel of a subgroup, the r-th time. Where there are several, neighbours belong to neighbouring workgroups: the last time, all
// of these have some.
uint panel_of(uint block, uint which, uint r) {
  return REPEATS == 1u ? block * PANELS + which : (r * PANELS + which) * WORKGROUPS + block;
}

// Of a subgroup that has a row panel for itself.
void store_panel(uint panel, uint which, uint l) {
  put_row_sums(which, 0u, l);
  total_[0] = total_[1] = 0.0;
  subgroupMemoryBarrierShared();
  subgroupBarrier();
  const uint q = l & 3u, n = panel * 16u + q * 4u;
  // By all lanes, as the next tiles would be waited for at a branch; but the output may lie where the residual was.
  const bool stores = HAS_RESIDUAL == 0u || l < 4u;
  if (stores && (N % 16u == 0u || n < N)) store_vec4(OUT_ROW(0u), n, sum_of(panel - which, which, 0u, q));
  subgroupBarrier();
}

void main() {
  const uint block = group() / params.row_blocks;
  if (block >= WORKGROUPS) return;  // the whole workgroup
  TAKE_ROWS(group() - block * params.row_blocks, 1u);
  const uint l = lane() & 31u, subgroup = lane() >> 5, which = subgroup / SLOTS, slot = subgroup - which * SLOTS;
  exponent_ |= l * params.row_blocks >> 31;  // adds 0, as there are fewer than 2^26 row blocks, but the compiler does not know it

  const uint last = (N - 1u) / 16u;  // past the end: the last one
  uint panel = min(panel_of(block, which, 0u), last);
  if (REPEATS == 1u) prefetch_ends(block * PANELS);  // first, as all loads are waited for at its branch
  if (NORM == 0u) prefetch_x(X_ROW(0u), subgroup, l);
  [[unroll]] for (uint d = 0u; d < DEPTH; ++d) prefetch(panel, slot, d, d, l);
  total_[0] = total_[1] = 0.0;
  if (NORM != 0u) norm_rows();
  else put_row(subgroup, l);
  for (uint r = 0u; r < REPEATS; ++r) {
    if (r > 0u && panel_of(block, which, r) > last) break;
    const uint after = REPEATS == 1u ? panel : min(panel_of(block, which, r + 1u), last);
    for (uint turn = 0u; turn + (APART ? 1u : 0u) < TURNS; ++turn) {
      const bool ends = REPEATS > 1u && turn + 1u == TURNS;
      [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
        multiply(slot, turn * DEPTH + d, d, l);
        prefetch(ends ? after : panel, slot, (ends ? 0u : turn + 1u) * DEPTH + d, d, l);
      }
    }
    if (APART) {
      [[unroll]] for (uint d = 0u; d < DEPTH; ++d) multiply(slot, (TURNS - 1u) * DEPTH + d, d, l);
    }
    if (REPEATS > 1u) store_panel(panel, which, l);
    panel = after;
  }
  if (REPEATS > 1u) return;
  put_row_sums(which, slot, l);
  barrier();
  store_ends(block * PANELS);
}
