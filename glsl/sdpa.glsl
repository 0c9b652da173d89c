// SPDX-License-Identifier: Apache-2.0
// out[l, :] = softmax_s(scale * q[l, :] . k[s, :] + mask[l, s]) v[s, :] for every head of a batch; a row whose keys are all masked is
// 0. A workgroup has BR query rows of one head and loops over the keys in blocks of BC: scores to shared memory, the running
// maximum and sum of each row updated, then the values added (online softmax): nothing of size L x S is stored.
//
// Rounding: fp32. A score has E products in order, |error| <= 2^-24 (E + 2) scale sum|q k|; a weight is exp of a difference (the
// driver's exp: 3 + 2|x| ulp) rescaled at most ceil(S / BC) times; the sums over s are in order within a block.
// Bindings: 0 out, 1 q, 2 k, 3 v, 4 mask, 5 sinks, 6 scales (CACHE i8).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#pragma choice MASK none boolean f32 f16 positions
#include "linear/sdpa.glslh"

layout(constant_id = 9) const uint STAGED = 0u;  // 1: keys and values go through shared memory, loaded a block ahead
layout(constant_id = 10) const uint PITCH = 9u;   // vec4 groups of a row there: one more than the longer of a key and a value

#define SEGMENTS (LANES / BR)  // lanes that share a row's maximum and sum; BR divides LANES
#define PAIRS (BR * VQ)        // of a row and a vec4 group of its output
#define SPLITS max(1u, LANES / PAIRS)              // shares of the keys, when there are lanes enough
#define OWNED ((PAIRS + LANES - 1u) / LANES)       // pairs of a lane, when there are not

shared vec4 query_[BR * EQ];
shared float score_[BR * BC];
shared float most_[LANES], total_[LANES];
shared float row_most_[BR], row_total_[BR], row_factor_[BR];
shared vec4 merge_[LANES];

// Staged: the keys of a block, then its values, PITCH apart so that neighbouring rows lie in different banks.
#define K_LOADS ((BC * EQ + LANES - 1u) / LANES)
#define V_LOADS ((BC * VQ + LANES - 1u) / LANES)
shared vec4 staged_[STAGED * BC * PITCH + 1u];
vec4 k_next_[STAGED * K_LOADS + 1u], v_next_[STAGED * V_LOADS + 1u];

void fetch_keys(uint block, uint k_base) {
  [[unroll]] for (uint i = 0u; i < K_LOADS; ++i) {
    const uint e = lane() + i * LANES, key = min(block + e / EQ, params.s - 1u);
    k_next_[i] = load_k(k_base + key * params.k_stride[2], e % EQ, params.e);
  }
}

void fetch_values(uint block, uint v_base) {
  [[unroll]] for (uint i = 0u; i < V_LOADS; ++i) {
    const uint e = lane() + i * LANES, key = min(block + e / VQ, params.s - 1u);
    v_next_[i] = load_v(v_base + key * params.v_stride[2], e % VQ, params.ev);
  }
}

void store_keys() {
  [[unroll]] for (uint i = 0u; i < K_LOADS; ++i) {
    const uint e = lane() + i * LANES;
    if (e < BC * EQ) staged_[e / EQ * PITCH + e % EQ] = k_next_[i];
  }
}

void store_values() {
  [[unroll]] for (uint i = 0u; i < V_LOADS; ++i) {
    const uint e = lane() + i * LANES;
    if (e < BC * VQ) staged_[e / VQ * PITCH + e % VQ] = v_next_[i];
  }
}

// Scores of the rows first .. and the keys block ..; what is past the end is masked.
void compute_scores(uint first, uint block, uint k_base, uint mask_base) {
  for (uint i = lane(); i < BR * BC; i += LANES) {
    const uint r = i / BC, row = first + r, key = block + i % BC;
    float score = -infinity();
    if (row < params.l && key < params.s) {
      vec4 sum = vec4(0.0);
      const uint at = k_base + key * params.k_stride[2];
      for (uint j = 0u; j < EQ; ++j) {
        const vec4 k = STAGED != 0u ? staged_[i % BC * PITCH + j] : load_k(at, j, params.e);
        sum = fma(query_[r * EQ + j], k, sum);
      }
      score = masked((sum.x + sum.y + sum.z + sum.w) * params.scale, row, key, mask_base);
    }
    score_[i] = score;
  }
}

// Turns scores into weights; updates the rows' maxima and sums, and the factors for what was summed before.
void update_rows() {
  const uint r = lane() / SEGMENTS, segment = lane() % SEGMENTS;
  const float before = row_most_[r];
  float most = before;
  for (uint c = segment; c < BC; c += SEGMENTS) most = maximum(most, score_[r * BC + c]);
  most_[lane()] = most;
  barrier();
  for (uint j = 0u; j < SEGMENTS; ++j) most = maximum(most, most_[r * SEGMENTS + j]);
  const float base = most == -infinity() ? 0.0 : most;
  float total = 0.0;
  for (uint c = segment; c < BC; c += SEGMENTS) {
    const float score = score_[r * BC + c];
    const float weight = score == -infinity() ? 0.0 : exp(score - base);
    score_[r * BC + c] = weight;
    total += weight;
  }
  total_[lane()] = total;
  barrier();
  if (segment == 0u) {
    for (uint j = 1u; j < SEGMENTS; ++j) total += total_[lane() + j];
    const float factor = before == -infinity() ? 0.0 : exp(before - base);
    row_most_[r] = most;
    row_factor_[r] = factor;
    row_total_[r] = fma(row_total_[r], factor, total);
  }
  barrier();
}

void main() {
  const Place at = place();
  const uint first = at.first, q_base = at.q, k_base = at.k, v_base = at.v;
  if (at.batch >= params.batches) return;  // the whole workgroup

  for (uint i = lane(); i < BR * EQ; i += LANES) {
    const uint row = min(first + i / EQ, params.l - 1u);
    query_[i] = load_q(q_base + row * params.q_stride[2], i % EQ, params.e);
  }
  for (uint r = lane(); r < BR; r += LANES) {
    row_most_[r] = -infinity();
    row_total_[r] = 0.0;
  }
  const uint split = lane() / PAIRS;
  vec4 sum[OWNED];
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) sum[i] = vec4(0.0);
  const uint begin = keys_begin(at), end = keys_end(at);
  if (STAGED != 0u && begin < end) fetch_keys(begin, k_base);
  barrier();

  for (uint block = begin; block < end; block += BC) {
    if (STAGED != 0u) {
      store_keys();
      fetch_values(block, v_base);
      barrier();
    }
    compute_scores(first, block, k_base, at.mask);
    barrier();
    if (STAGED != 0u) {
      store_values();  // over the keys; update_rows has the barrier before they are read
      if (block + BC < end) fetch_keys(block + BC, k_base);
    }
    update_rows();
    const uint keys = min(BC, end - block);
    [[unroll]] for (uint i = 0u; i < OWNED; ++i) {
      const uint pair = OWNED == 1u ? lane() % PAIRS : lane() + i * LANES;
      const uint r = pair / VQ, vec4_index = pair % VQ;
      if (pair < PAIRS && split < SPLITS) {
        sum[i] *= row_factor_[r];
        for (uint c = split; c < keys; c += SPLITS) {
          const vec4 v =
              STAGED != 0u ? staged_[c * PITCH + vec4_index] : load_v(v_base + (block + c) * params.v_stride[2], vec4_index, params.ev);
          sum[i] = fma(vec4(score_[r * BC + c]), v, sum[i]);
        }
      }
    }
    barrier();
  }

  if (SPLITS > 1u) {
    merge_[lane()] = sum[0];
    barrier();
    if (split == 0u) {
      for (uint j = 1u; j < SPLITS; ++j) sum[0] += merge_[lane() + j * PAIRS];
    }
  }
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) {
    const uint pair = lane() + i * LANES, r = pair / VQ, vec4_index = pair % VQ, row = first + r;
    if (pair < PAIRS && row < params.l) {
      store_output(at, row, vec4_index, sum[i] * finish(at.head, row_most_[r], row_total_[r], 1.0));
    }
  }
}
