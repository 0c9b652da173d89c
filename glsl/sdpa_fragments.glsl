// SPDX-License-Identifier: Apache-2.0
// sdpa.glsl by cooperative matrices whose elements are in the lanes that vulkan/probe.h expects. A subgroup has 16 query rows
// of a head, whose scores, weights and sums never leave its registers: the elements of a matrix of scores are where those of the
// weights must be. Lane 4g + t has a part of the rows g and g + 8.
//
// KEYS  shared  the workgroup shares blocks of keys and values in shared memory, its subgroups have different rows
//       own     KEY_PARTS subgroups have the same rows, and each its own keys (linear/sdpa_parts.glslh): for few workgroups
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
#pragma variant KEYS shared own
#pragma without DTYPE=f32 CACHE=i8
#pragma without CACHE=i8 KEYS=own
#pragma choice MASK none boolean f32 f16 positions
#include "linear/sdpa.glslh"

layout(constant_id = 9) const uint SHARED = 1u;  // uvec4: ops/shared/sdpa_kernel.cpp has the formula
layout(constant_id = 10) const uint KEY_PARTS = 1u;  // subgroups that have the same rows

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

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
C_MATRIX sum_[V8 / 2u], score_[BC / 16u];
A_MATRIX query_[PARTS * E8 / 2u], weight_[PARTS * BC / 16u];  // high parts, then low ones

// Of a row's four elements, then those of the row eight later.
A_MATRIX a_matrix(uvec4 words) {
  A_MATRIX a;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const f16vec2 both = unpackFloat2x16(words[i]);
    a[2u * i] = both.x;
    a[2u * i + 1u] = both.y;
  }
  return a;
}

uint first_row(Place at) { return at.first + gl_SubgroupID / KEY_PARTS * 16u; }

// KEYS shared: queries of fp16 at first, then keys and values, then the sums on their way out. KEYS own: only these.
shared uvec4 shared_[SHARED];
#if defined(DTYPE_f32)
#include "linear/sdpa_split_products.glslh"
#else
void set_weight(uint n, uint e, float weight) { weight_[n][e] = float16_t(weight); }
float value_down() { return 1.0; }
#endif
#if defined(KEYS_own)
#include "linear/sdpa_parts.glslh"
#elif defined(DTYPE_f32)
#include "linear/sdpa_split.glslh"
#else
#include "linear/sdpa_tiles.glslh"
void store_block() {
  store_keys();
  store_values();
}
#endif
#include "linear/sdpa_weights.glslh"

#if defined(KEYS_shared)
#if defined(DTYPE_f16)
void load_queries(Place at) {
  store_queries(at);
  barrier();
  [[unroll]] for (uint k = 0u; k < E8 / 2u; ++k) {
    const uint first = gl_SubgroupID * 16u * E_PITCH + k * 2u;
    coopMatLoad(query_[k], shared_, first, E_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  }
}
#endif

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
#endif

#if !defined(DTYPE_f32)
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
#endif

#if defined(KEYS_own)
#include "linear/sdpa_own_keys.glslh"
#else
// Of all keys, block after block, which the workgroup shares.
void attend(Place at, inout vec2 most, inout vec2 total) {
  const uint begin = keys_begin(at), end = keys_end(at);
#if defined(DTYPE_f32)
  fetched_end_ = end;
  fetch_queries(at);
#endif
  fetch_keys(at, begin);
  fetch_values(at, begin);
  load_queries(at);
  for (uint block = begin; block < end; block += BC) {
    share_sizes();
    barrier();
    store_block();
    barrier();
    fetch_keys(at, block + BC);  // after the last block: not used
    fetch_values(at, block + BC);
    fetch_mask(at, block);
    multiply_keys();
    mask_scores(at, block);
    update_rows(most, total);
    multiply_values();
  }
  barrier();
}

// Large heads have many matrices: of fp32, whose code is long anyway, the end stands once, in a loop that turns the sums round. A driver
// unrolls what it can count, but not up to params.l.
#if defined(DTYPE_f32)
#define EACH_MATRIX [[dont_unroll]]
#define MATRICES min(V8 / 2u, params.l + V8 / 2u)
#define SUM_OF(j) 0u
#else
#define EACH_MATRIX [[unroll]]
#define MATRICES (V8 / 2u)
#define SUM_OF(j) j
#endif

void store_rows(Place at, vec2 most, vec2 total) {
  [[unroll]] for (uint d = 1u; d <= 2u; d *= 2u) total += subgroupShuffleXor(total, d);
  const vec2 factor = vec2(finish(at.head, most.x / LOG2_E, total.x, UNIT), finish(at.head, most.y / LOG2_E, total.y, UNIT));
  const uint base = gl_SubgroupID * 16u * OUT_PITCH;
  EACH_MATRIX for (uint j = 0u; j < MATRICES; ++j) {
    const uint of = SUM_OF(j);
    // The factor is 0 where all keys were masked.
    [[unroll]] for (uint e = 0u; e < 8u; ++e)
      sum_[of][e] = factor[e >> 2] == 0.0 ? 0.0 : sum_[of][e] * factor[e >> 2] * value_down();
    coopMatStore(sum_[of], shared_, base, OUT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
#if defined(DTYPE_f32)
    [[unroll]] for (uint k = 1u; k < V8 / 2u; ++k) sum_[k - 1u] = sum_[k];
#endif
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
#endif

void main() {
#if defined(KEYS_own)
  const Place at = place_quickly();
#else
  const Place at = place();
#endif
  if (at.batch >= params.batches) return;  // the whole workgroup

  [[unroll]] for (uint j = 0u; j < V8 / 2u; ++j) sum_[j] = C_MATRIX(0.0);
  vec2 most = vec2(-infinity()), total = vec2(0.0);
  attend(at, most, total);
  store_rows(at, most, total);
}
