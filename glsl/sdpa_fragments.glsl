// SPDX-License-Identifier: Apache-2.0
// sdpa.glsl in fp16 by cooperative matrices whose elements are in the lanes that vulkan/probe.h expects. A subgroup has 16 query rows
// of a head, whose scores, weights and sums never leave its registers: the elements of a matrix of scores are where those of the
// weights must be. Lane 4g + t has a part of the rows g and g + 8. The workgroup shares blocks of keys and values.
//
// Rounding: as sdpa_matrix.glsl: products are exact, sums fp32 (2^-23 each, as matrix units may truncate); a weight, 1024 exp(score -
// maximum), is rounded to fp16: its error is 2^-11 of itself, or 2^-24 of the largest one where it is subnormal.
// Bindings: 0 out, 1 q, 2 k, 3 v, 4 mask, 5 sinks, 6 scales (CACHE i8).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant CACHE own i8
#pragma choice MASK none boolean f32 f16 positions
#define DTYPE f16
#define DTYPE_f16 1
#include "linear/sdpa.glslh"

layout(constant_id = 9) const uint SHARED = 1u;  // uvec4: ops/shared/sdpa_kernel.cpp has the formula

#define E8 ((EQ * 4u + 15u) / 16u * 2u)  // half8 of a query and a key, whole matrices
#define V8 ((VQ * 4u + 15u) / 16u * 2u)
#define E_PITCH (E8 + 1u)  // eight rows then lie in different banks
#define V_PITCH (V8 + 1u)
#define K_AT 0u
#define V_AT (BC * E_PITCH)
#define OUT_PITCH 5u  // uvec4 of a row of 16 sums

// Queries at first, then keys and values, then the sums on their way out.
shared uvec4 shared_[SHARED];
#include "linear/sdpa_tiles.glslh"

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
C_MATRIX sum_[V8 / 2u], score_[BC / 16u];
A_MATRIX query_[E8 / 2u], weight_[BC / 16u];

#define LOG2_E 1.44269504
#define UNIT 1024.0  // weights are multiples of it, so that few are subnormal
#define LOG2_UNIT 10.0

uint first_row(Place at) { return at.first + gl_SubgroupID * 16u; }

void load_queries(Place at) {
  for (uint i = lane(); i < BR * E8; i += LANES) {
    const uint row = min(at.first + i / E8, params.l - 1u);
    shared_[i / E8 * E_PITCH + i % E8] = half8_q(at.q + row * params.q_stride[2], i % E8, params.e);
  }
  barrier();
  [[unroll]] for (uint k = 0u; k < E8 / 2u; ++k) {
    coopMatLoad(query_[k], shared_, gl_SubgroupID * 16u * E_PITCH + k * 2u, E_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  }
  barrier();
}

void multiply_keys() {
  [[unroll]] for (uint n = 0u; n < BC / 16u; ++n) {
    score_[n] = C_MATRIX(0.0);
    [[unroll]] for (uint k = 0u; k < E8 / 2u; ++k) {
      B_MATRIX keys;
      coopMatLoad(keys, shared_, K_AT + n * 16u * E_PITCH + k * 2u, E_PITCH, gl_CooperativeMatrixLayoutColumnMajor);
      score_[n] = coopMatMulAdd(query_[k], keys, score_[n]);
    }
  }
}

void multiply_values() {
  [[unroll]] for (uint k = 0u; k < BC / 16u; ++k) {
    [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) {
      B_MATRIX values;
      coopMatLoad(values, shared_, V_AT + k * 16u * V_PITCH + j * 2u, V_PITCH, gl_CooperativeMatrixLayoutRowMajor);
      sum_[j] = coopMatMulAdd(weight_[k], values, sum_[j]);
    }
  }
}

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
      weight_[n][e] = float16_t(weight);
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
    barrier();
  }
  store_rows(at, most, total);
}
