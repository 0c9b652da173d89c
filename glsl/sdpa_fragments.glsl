// SPDX-License-Identifier: Apache-2.0
// sdpa.glsl by cooperative matrices whose elements are in the lanes that vulkan/probe.h expects. A subgroup has 16 query rows
// of a head, whose scores, weights and sums never leave its registers: the elements of a matrix of scores are where those of the
// weights must be. Lane 4g + t has a part of the rows g and g + 8. The workgroup shares blocks of keys and values.
//
// Rounding: as sdpa_matrix.glsl: products are exact, sums fp32 (2^-23 each, as matrix units may truncate); a weight, 1024 exp(score -
// maximum), is rounded to fp16: its error is 2^-11 of itself, or 2^-24 of the largest one where it is subnormal.
// DTYPE f32: queries, keys, values and weights are two fp16 each (math/split.glslh), of which three products are summed:
// ops/sdpa.cpp has the error.
// Bindings: 0 out, 1 q, 2 k, 3 v, 4 mask, 5 sinks, 6 scales (CACHE i8).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#pragma without DTYPE=f32 CACHE=i8
#pragma choice MASK none boolean f32 f16 positions
#include "linear/sdpa.glslh"

layout(constant_id = 9) const uint SHARED = 1u;  // uvec4: ops/shared/sdpa_kernel.cpp has the formula

#define E8 ((EQ * 4u + 15u) / 16u * 2u)  // half8 of a query and a key, whole matrices
#define V8 ((VQ * 4u + 15u) / 16u * 2u)
#define E_PITCH (E8 + 1u)  // eight rows then lie in different banks
#define V_PITCH (V8 + 1u)
#if defined(DTYPE_f32)
#define PARTS 2u  // of an element
#else
#define PARTS 1u
#endif
#define K_AT 0u
#define V_AT (PARTS * BC * E_PITCH)
#define OUT_PITCH 5u  // uvec4 of a row of 16 sums

// Queries at first, then keys and values, then the sums on their way out.
shared uvec4 shared_[SHARED];
#if defined(DTYPE_f32)
#include "linear/sdpa_split.glslh"
#else
#include "linear/sdpa_tiles.glslh"
#endif

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
C_MATRIX sum_[V8 / 2u], score_[BC / 16u];
A_MATRIX query_[PARTS * E8 / 2u], weight_[PARTS * BC / 16u];  // high parts, then low ones

#define LOG2_E 1.44269504
#define UNIT 1024.0  // weights are multiples of it, so that few are subnormal
#define LOG2_UNIT 10.0

uint first_row(Place at) { return at.first + gl_SubgroupID * 16u; }

void load_queries(Place at) {
  store_queries(at);
  barrier();
  [[unroll]] for (uint i = 0u; i < PARTS * E8 / 2u; ++i) {
    const uint part = i / (E8 / 2u), k = i % (E8 / 2u);
    const uint first = (part * BR + gl_SubgroupID * 16u) * E_PITCH + k * 2u;
    coopMatLoad(query_[i], shared_, first, E_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
}

B_MATRIX keys(uint part, uint n, uint k) {
  B_MATRIX b;
  const uint first = K_AT + (part * BC + n * 16u) * E_PITCH + k * 2u;
  coopMatLoad(b, shared_, first, E_PITCH, gl_CooperativeMatrixLayoutColumnMajor);
  return b;
}

B_MATRIX values(uint part, uint k, uint j) {
  B_MATRIX b;
  const uint first = V_AT + (part * BC + k * 16u) * V_PITCH + j * 2u;
  coopMatLoad(b, shared_, first, V_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  return b;
}

#if defined(DTYPE_f32)
// The product of the low parts is too small to count.
void multiply_parts(A_MATRIX high, A_MATRIX low, B_MATRIX b_high, B_MATRIX b_low, inout C_MATRIX sum, inout C_MATRIX less) {
  sum = coopMatMulAdd(high, b_high, sum);
  less = coopMatMulAdd(low, b_high, less);
  less = coopMatMulAdd(high, b_low, less);
}

void multiply_keys() {
  const vec2 first = min(query_down_, vec2(key_down_)), second = max(query_down_, vec2(key_down_));
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    C_MATRIX sum = C_MATRIX(0.0), less = C_MATRIX(0.0);
    [[unroll]] for (uint k = 0u; k < E8 / 2u; ++k)
      multiply_parts(query_[k], query_[E8 / 2u + k], keys(0u, n, k), keys(1u, n, k), sum, less);
    [[unroll]] for (uint e = 0u; e < 8u; ++e)
      score_[n][e] = fma(less[e], LOW_UNIT, sum[e]) * first[e >> 2] * second[e >> 2];
  }
}

void multiply_values() {
  [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) {
    C_MATRIX sum = C_MATRIX(0.0), less = C_MATRIX(0.0);
    [[unroll]] for (uint k = 0u; k < BC / 16u; ++k)
      multiply_parts(weight_[k], weight_[BC / 16u + k], values(0u, k, j), values(1u, k, j), sum, less);
    [[unroll]] for (uint e = 0u; e < 8u; ++e) sum_[j][e] = fma(fma(less[e], LOW_UNIT, sum[e]), value_down_, sum_[j][e]);
  }
}

// A high part is 0 only where the weight is: it is a factor of what is Inf.
void set_weight(uint n, uint e, float weight) {
  const float high = weight >= LEAST_NORMAL ? high_bits(weight) : weight > 0.0 ? LEAST_NORMAL : 0.0;
  weight_[n][e] = float16_t(high);
  weight_[BC / 16u + n][e] = float16_t((weight - high) * 2048.0);
}
#else
void multiply_keys() {
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    score_[n] = C_MATRIX(0.0);
    [[unroll]] for (uint k = 0u; k < E8 / 2u; ++k) score_[n] = coopMatMulAdd(query_[k], keys(0u, n, k), score_[n]);
  }
}

void multiply_values() {
  [[unroll]] for (uint k = 0u; k < BC / 16u; ++k) {
    [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) sum_[j] = coopMatMulAdd(weight_[k], values(0u, k, j), sum_[j]);
  }
}

void set_weight(uint n, uint e, float weight) { weight_[n][e] = float16_t(weight); }
#endif

// Whether every row of the subgroup sees every key of the block, whose scores then only need the scale.
bool all_seen(Place at, uint block) {
  if (MASK == MASK_positions) {
    return params.window == 0u && params.softcap == 0.0 && int(block + BC) <= position_of(first_row(at), at.mask) + 1 &&
           block + BC <= params.s;
  }
  return MASK == MASK_none && block + BC <= (CAUSAL != 0u ? min(first_row(at) + 1u, params.s) : params.s);
}

// What scores are to be multiplied with to be in units of log2(e): 1 where they are already, since the mask changes their values.
float score_factor() {
  const bool plain = params.scale > 0.0 && params.softcap == 0.0 && MASK != MASK_f32 && MASK != MASK_f16;
  return plain ? params.scale * LOG2_E : 1.0;
}

// Query row and key of score e of matrix n; past the ends, the last ones.
uint row_of(Place at, uint e) {
  return min(first_row(at) + (gl_SubgroupInvocationID >> 2) + (e >> 2) * 8u, params.l - 1u);
}
uint key_of(uint block, uint n, uint e) {
  return block + n * 16u + 2u * (gl_SubgroupInvocationID & 3u) + (e & 1u) + (e & 2u) * 4u;
}

// The word of the mask for score i % 8 of matrix i / 8.
uint word_of(Place at, uint block, uint i) {
  const uint key = min(key_of(block, i >> 3, i & 7u), params.s - 1u);
  return mask_word(mask_at(row_of(at, i & 7u), key, at.mask));
}

// Words of a block, on their way while keys are multiplied; not of large heads, whose sums take the registers.
#define MASK_AHEAD (V8 <= 8u)
uint mask_words_[MASK_AHEAD ? BC / 2u : 1u];
void fetch_mask(Place at, uint block) {
  if (MASK == MASK_none || MASK == MASK_positions || !MASK_AHEAD) return;
  [[unroll]] for (uint i = 0u; i < BC / 2u; ++i) mask_words_[i] = word_of(at, block, i);
}

// Scores that are not seen become -infinity; where score_factor is 1, the others are multiplied with their factor.
void mask_scores(Place at, uint block) {
  const bool scaled = score_factor() == 1.0;
  if (!scaled && all_seen(at, block)) return;
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    [[unroll]] for (uint e = 0u; e < 8u; ++e) {
      const uint row = row_of(at, e), key = key_of(block, n, e);
      const float s = scaled ? score_[n][e] * params.scale : score_[n][e];
      const uint i = n * 8u + e, word = MASK_AHEAD ? mask_words_[i] : word_of(at, block, i);
      const float seen = key < params.s ? masked_by(s, row, key, at.mask, word) : -infinity();
      score_[n][e] = scaled ? seen * LOG2_E : seen;
    }
  }
}

// Scores to weights. A score that is NaN makes its weight, and with it the row, NaN: the maximum need not be. `most`: the maxima of rows g and g + 8, in units of log2(e); `total`: the lane's parts of their sums.
void update_rows(inout vec2 most, inout vec2 total) {
  const float unit = score_factor();
  vec2 now = vec2(-infinity());
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) now = max(now, vec2(score_[n][e], score_[n][e + 4u]));
  }
  [[unroll]] for (uint d = 1u; d <= 2u; d *= 2u) {
    const vec2 other = subgroupShuffleXor(now, d);
    now = max(now, other);
  }
  now = max(most, now * unit);
  const vec2 base = vec2(now.x == -infinity() ? 0.0 : now.x, now.y == -infinity() ? 0.0 : now.y);
  const vec2 factor = exp2(most - base), from = base - LOG2_UNIT;  // the factor is 0 of the first block
  most = now;
  total *= factor;
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    [[unroll]] for (uint e = 0u; e < 8u; ++e) {
      const uint r = e >> 2;
      const float weight = exp2(fma(score_[n][e], unit, -from[r]));
      total[r] += weight;
      set_weight(n, e, weight);
    }
  }
  [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) {
    [[unroll]] for (uint e = 0u; e < 8u; ++e) sum_[j][e] *= factor[e >> 2];
  }
}

void store_rows(Place at, vec2 most, vec2 total) {
  [[unroll]] for (uint d = 1u; d <= 2u; d *= 2u) total += subgroupShuffleXor(total, d);
  const vec2 factor = vec2(finish(at.head, most.x / LOG2_E, total.x, UNIT), finish(at.head, most.y / LOG2_E, total.y, UNIT));
  const uint base = gl_SubgroupID * 16u * OUT_PITCH;
  [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) {
    // The factor is 0 where all keys were masked.
    [[unroll]] for (uint e = 0u; e < 8u; ++e) sum_[j][e] = factor[e >> 2] == 0.0 ? 0.0 : sum_[j][e] * factor[e >> 2];
    coopMatStore(sum_[j], shared_, base, OUT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint i = gl_SubgroupInvocationID; i < 64u; i += 32u) {
      const uint r = i >> 2, q = i & 3u, row = first_row(at) + r, vec4_index = j * 4u + q;
      if (row < params.l && vec4_index < VQ) store_output(at, row, vec4_index, uintBitsToFloat(shared_[base + r * OUT_PITCH + q]));
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  }
}

void main() {
  const Place at = place();
  if (at.batch >= params.batches) return;  // the whole workgroup

  const uint begin = keys_begin(at), end = keys_end(at);
  fetch_keys(at, begin);
  fetch_values(at, begin);
  share_sizes();
  load_queries(at);
  [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) sum_[j] = C_MATRIX(0.0);
  vec2 most = vec2(-infinity()), total = vec2(0.0);

  for (uint block = begin; block < end; block += BC) {
    store_keys();
    store_values();
    barrier();
    fetch_keys(at, block + BC);  // after the last block: not used
    fetch_values(at, block + BC);
    fetch_mask(at, block);
    multiply_keys();
    mask_scores(at, block);
    update_rows(most, total);
    multiply_values();
    share_sizes();
    barrier();
  }
  store_rows(at, most, total);
}
