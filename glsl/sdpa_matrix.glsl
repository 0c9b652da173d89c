// SPDX-License-Identifier: Apache-2.0
// sdpa.glsl in fp16 by cooperative matrices of any shape TM x TN x TK: a subgroup has TM query rows of a head, a workgroup
// BR = TM * subgroups of them, which share the keys and then the values of a block in shared memory. A subgroup's scores go through
// shared memory, too: a lane reads its part of one row, masks it, and stores fp16 weights in place of the scores. When a row's
// maximum grows, the earlier sums are multiplied by a matrix whose rows hold the rows' factors.
//
// Rounding: products are exact, sums fp32 (2^-23 each, as matrix units may truncate); a weight, 1024 exp(score - maximum), is
// rounded to fp16: its error is 2^-11 of itself, or 2^-24 of the largest one where it is subnormal.
// Bindings: 0 out, 1 q, 2 k, 3 v, 4 mask, 5 sinks, 6 scales (CACHE i8).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant CACHE own i8
#pragma choice MASK none boolean f32 f16 positions
#define DTYPE f16
#define DTYPE_f16 1
#include "linear/sdpa.glslh"

layout(constant_id = 9) const uint TM = 16u;
layout(constant_id = 10) const uint TN = 16u;  // multiple of 8, at most BC / 2
layout(constant_id = 11) const uint TK = 16u;  // multiple of 8
layout(constant_id = 12) const uint SUBGROUP = 32u;  // its size: a multiple of TM
layout(constant_id = 13) const uint STAGED = 1u;  // half8 for queries, keys and values: ops/shared/sdpa_kernel.cpp has the formula

#define E8 ((EQ * 4u + TK - 1u) / TK * (TK / 8u))  // half8 of a query and a key, whole matrices
#define V8 ((VQ * 4u + TN - 1u) / TN * (TN / 8u))
#define E_PITCH (E8 + 1u)  // eight rows then lie in different banks
#define V_PITCH (V8 + 1u)
#define S_PITCH (BC / 4u + 1u)
#define SEGMENTS (SUBGROUP / TM)  // lanes of a row
#define HALF8S (BC / 8u / SEGMENTS)  // of scores that a lane has

// Queries, then keys and values in turn; after them BR rows of scores, in each of which the weights (BC / 8) and then the
// row's factor TN times (TN / 4) replace the scores.
shared uvec4 shared_[STAGED + BR * S_PITCH];
shared float row_scratch_[LANES];

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
C_MATRIX sum_[V8 * 8u / TN];

#define K_AT 0u
#define V_AT 0u
#include "linear/sdpa_tiles.glslh"

void subgroup_memory() {
  subgroupMemoryBarrierShared();
  subgroupBarrier();
}

// The row of a lane in its subgroup, its part of that row, and where the scores of its subgroup begin.
uint row_of_lane() { return gl_SubgroupInvocationID % TM; }
uint segment() { return gl_SubgroupInvocationID / TM; }
uint scores_at() { return STAGED + gl_SubgroupID * TM * S_PITCH; }

// Stores `factor` of a lane's row so that a matrix load finds it in every column of that row.
void spread_factor(float factor) {
  const uint base = scores_at() + row_of_lane() * S_PITCH + BC / 8u;
  for (uint i = segment(); i < TN / 4u; i += SEGMENTS) shared_[base + i] = floatBitsToUint(vec4(factor));
}

void multiply_sums() {
  C_MATRIX factors;
  coopMatLoad(factors, shared_, scores_at() + BC / 8u, S_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  [[unroll]] for (uint j = 0u; j < V8 * 8u / TN; ++j) sum_[j] = sum_[j] * factors;
}

// Turns the scores of a lane into weights; updates `most`, its row's maximum, and `total`, the sum of its part of the row.
void update_row(Place at, uint block, inout float most, inout float total) {
  const uint row = min(at.first + gl_SubgroupID * TM + row_of_lane(), params.l - 1u);
  const uint base = scores_at() + row_of_lane() * S_PITCH;
  float score[HALF8S * 8u], now = most;
  [[unroll]] for (uint i = 0u; i < HALF8S * 8u; ++i) {
    const uint c = (segment() + i / 8u * SEGMENTS) * 8u + i % 8u, key = block + c;
    score[i] = -infinity();
    if (key < params.s) score[i] = masked(uintBitsToFloat(shared_[base + c / 4u][c % 4u]) * params.scale, row, key, at.mask);
    now = maximum(now, score[i]);
  }
  row_scratch_[lane()] = now;
  subgroup_memory();
  [[unroll]] for (uint j = 0u; j < SEGMENTS; ++j) {
    now = maximum(now, row_scratch_[gl_SubgroupID * SUBGROUP + j * TM + row_of_lane()]);
  }
  const float from = now == -infinity() ? 0.0 : now, factor = most == -infinity() ? 0.0 : exp(most - from);
  most = now;
  total *= factor;
  [[unroll]] for (uint i = 0u; i < HALF8S; ++i) {
    float weight[8];
    [[unroll]] for (uint j = 0u; j < 8u; ++j) {
      const float s = score[i * 8u + j];
      weight[j] = s == -infinity() ? 0.0 : 1024.0 * exp(s - from);
      total += weight[j];
    }
    shared_[base + segment() + i * SEGMENTS] =
        uvec4(packHalf2x16(vec2(weight[0], weight[1])), packHalf2x16(vec2(weight[2], weight[3])),
              packHalf2x16(vec2(weight[4], weight[5])), packHalf2x16(vec2(weight[6], weight[7])));
  }
  spread_factor(factor);
}

void main() {
  const Place at = place();
  if (at.batch >= params.batches) return;  // the whole workgroup

  const uint begin = keys_begin(at), end = keys_end(at);
  if (begin < end) fetch_keys(at, begin);
  for (uint i = lane(); i < BR * E8; i += LANES) {
    const uint row = min(at.first + i / E8, params.l - 1u);
    shared_[i / E8 * E_PITCH + i % E8] = half8_q(at.q + row * params.q_stride[2], i % E8, params.e);
  }
  barrier();
  A_MATRIX query[E8 * 8u / TK];
  [[unroll]] for (uint k = 0u; k < E8 * 8u / TK; ++k) {
    coopMatLoad(query[k], shared_, gl_SubgroupID * TM * E_PITCH + k * (TK / 8u), E_PITCH, gl_CooperativeMatrixLayoutRowMajor);
  }
  [[unroll]] for (uint j = 0u; j < V8 * 8u / TN; ++j) sum_[j] = C_MATRIX(0.0);
  float most = -infinity(), total = 0.0;
  barrier();

  for (uint block = begin; block < end; block += BC) {
    store_keys();
    fetch_values(at, block);
    barrier();
    [[unroll]] for (uint n = 0u; n < BC / TN; ++n) {
      C_MATRIX scores = C_MATRIX(0.0);
      [[unroll]] for (uint k = 0u; k < E8 * 8u / TK; ++k) {
        B_MATRIX keys;
        coopMatLoad(keys, shared_, n * TN * E_PITCH + k * (TK / 8u), E_PITCH, gl_CooperativeMatrixLayoutColumnMajor);
        scores = coopMatMulAdd(query[k], keys, scores);
      }
      coopMatStore(scores, shared_, scores_at() + n * (TN / 4u), S_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    store_values();
    if (block + BC < end) fetch_keys(at, block + BC);
    update_row(at, block, most, total);
    barrier();
    multiply_sums();
    [[unroll]] for (uint k = 0u; k < BC / TK; ++k) {
      A_MATRIX weights;
      coopMatLoad(weights, shared_, scores_at() + k * (TK / 8u), S_PITCH, gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint j = 0u; j < V8 * 8u / TN; ++j) {
        B_MATRIX values;
        coopMatLoad(values, shared_, k * TK * V_PITCH + j * (TN / 8u), V_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        sum_[j] = coopMatMulAdd(weights, values, sum_[j]);
      }
    }
    barrier();
  }

  row_scratch_[lane()] = total;
  subgroup_memory();
  total = 0.0;
  [[unroll]] for (uint j = 0u; j < SEGMENTS; ++j) total += row_scratch_[gl_SubgroupID * SUBGROUP + j * TM + row_of_lane()];
  spread_factor(finish(at.head, most, total, 1024.0));
  subgroup_memory();
  multiply_sums();
  [[unroll]] for (uint j = 0u; j < V8 * 8u / TN; ++j) {
    subgroup_memory();
    coopMatStore(sum_[j], shared_, scores_at(), S_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    subgroup_memory();
    for (uint i = gl_SubgroupInvocationID; i < TM * TN / 4u; i += SUBGROUP) {
      const uint r = i / (TN / 4u), q = i % (TN / 4u), row = at.first + gl_SubgroupID * TM + r, vec4_index = j * (TN / 4u) + q;
      const uint base = scores_at() + r * S_PITCH;
      const bool seen = shared_[base + BC / 8u].x != 0u;  // the factor is 0 where all keys were masked
      if (row < params.l && vec4_index < VQ) store_output(at, row, vec4_index, seen ? uintBitsToFloat(shared_[base + q]) : vec4(0.0));
    }
  }
}
