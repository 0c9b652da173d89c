// SPDX-License-Identifier: Apache-2.0
// Attention of few new rows over caches (ops/cached_attention.cpp has the formula). A workgroup has a head of the caches, the ROWS
// query rows that read it (of all its query heads), and a share of the live positions. Each subgroup takes SUBGROUP positions at a
// time, a lane a position: scores, then the weights go through shared memory, then a lane adds octets of eight elements of the
// values. Subgroups, and then shares, are merged at the end; the last share to arrive, by a ticket, merges them all.
//
// How many shares are used follows from `first`, a buffer: one recording serves all positions. The others end at once.
//
// Rounding: fp32. A score adds E products in order; a lane adds the values of P of each SUBGROUP positions in order, then lanes,
// subgroups and shares are added. Bindings: 0 out, 1 partial sums, 2 tickets, 3 q, 4 key cache, 5 value cache,
// 6 first, 7 sinks.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant DTYPE f32 f16
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint ROWS = 1u;
layout(constant_id = 2) const uint E8 = 8u;        // octets of a query and a key
layout(constant_id = 3) const uint V8 = 8u;        // of a value
layout(constant_id = 4) const uint SUBGROUP = 32u;  // its size, a power of two
layout(constant_id = 5) const uint P = 8u;         // lanes that share a value: a power of two, at most SUBGROUP
layout(constant_id = 6) const uint LEAST = 256u;   // positions of a share, where there is more than one
layout(constant_id = 7) const bool SINKS = false;

#if defined(DTYPE_f16)
#define OCTET uvec4
vec4 low4(uvec4 o) { return unpack_f16(o.xy); }
vec4 high4(uvec4 o) { return unpack_f16(o.zw); }
#define STORE_OCTET(i, a, b) out_[i] = uvec4(pack_f16(a), pack_f16(b))
#else
struct Octet { uvec4 low, high; };
#define OCTET Octet
vec4 low4(Octet o) { return unpack_f32(o.low); }
vec4 high4(Octet o) { return unpack_f32(o.high); }
#define STORE_OCTET(i, a, b) out_[i] = Octet(pack_f32(a), pack_f32(b))
#endif

layout(set = 0, binding = 0) writeonly buffer Out { OCTET out_[]; };
layout(set = 0, binding = 1) coherent buffer Partial { vec4 partial_[]; };
layout(set = 0, binding = 2) coherent buffer Tickets { uint tickets_[]; };
layout(set = 0, binding = 3) readonly buffer Q { OCTET q_[]; };
layout(set = 0, binding = 4) readonly buffer KeyCache { OCTET key_cache_[]; };
layout(set = 0, binding = 5) readonly buffer ValueCache { OCTET value_cache_[]; };
layout(set = 0, binding = 6) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = 7) readonly buffer Sinks { WORD(DTYPE) sinks_[]; };
layout(push_constant) uniform Params {
  uint batches;
  uint l;         // new rows of a sequence
  uint heads;     // of q
  uint kv_heads;  // of the caches
  uint s;         // rows of a cache
  uint splits;    // workgroups of a head of a cache
  float scale;
  uint window;    // positions that a row sees; 0: all before it
  float softcap;  // 0: none
} params;

#define SUBGROUPS (LANES / SUBGROUP)
#define OWN ((V8 + P - 1u) / P)  // octets of a value that a lane adds

shared vec4 query_[ROWS * E8 * 2u];
shared float weight_[LANES * ROWS];                    // [subgroup][row][position]
shared float most_[SUBGROUPS * ROWS], total_[SUBGROUPS * ROWS];
shared vec4 sum_[SUBGROUPS * ROWS * V8 * 2u];
shared uint ticket_;

// A running softmax of each row over the positions of a subgroup.
float row_most_[ROWS], row_total_[ROWS];
vec4 row_sum_[ROWS * OWN * 2u];

float exp_or_zero(float x, float base) { return x == -infinity() ? 0.0 : exp(x - base); }

uint lane_of_subgroup() { return lane() % SUBGROUP; }
uint subgroup() { return lane() / SUBGROUP; }

// A lane's key, and its parts of the values of the subgroup's positions: loaded long before they are needed, the values into
// registers that the key has left.
OCTET key_[E8], values_[P * OWN];

void load_key(uint key_row) {
  [[unroll]] for (uint j = 0u; j < E8; ++j) key_[j] = key_cache_[key_row * E8 + j];
}

void load_values(uint head_row, uint block, uint end) {
  [[unroll]] for (uint t = 0u; t < P; ++t) {
    const uint row = head_row + min(block + t * (SUBGROUP / P) + lane_of_subgroup() / P, end - 1u);
    [[unroll]] for (uint o = 0u; o < OWN; ++o)
      values_[t * OWN + o] = value_cache_[row * V8 + min(lane_of_subgroup() % P + o * P, V8 - 1u)];
  }
}

void multiply_key(out float score[ROWS]) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) score[r] = 0.0;
  [[unroll]] for (uint j = 0u; j < E8; ++j) {
    const vec4 a = low4(key_[j]), b = high4(key_[j]);
    [[unroll]] for (uint r = 0u; r < ROWS; ++r)
      score[r] += dot(query_[(r * E8 + j) * 2u], a) + dot(query_[(r * E8 + j) * 2u + 1u], b);
  }
}

void add_scores(float score[ROWS], uint position, uint end, int first) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    float s = score[r];
    if (params.softcap > 0.0) s = params.softcap * tanh(s / params.softcap);
    const int at = int(position), own = first + int(r % params.l);
    if (position >= end || at > own || (params.window != 0u && at <= own - int(params.window))) s = -infinity();
    const float most = maximum(row_most_[r], subgroupMax(s)), base = most == -infinity() ? 0.0 : most;
    const float factor = exp_or_zero(row_most_[r], base), weight = exp_or_zero(s, base);
    row_total_[r] = fma(row_total_[r], factor, weight);
    [[unroll]] for (uint o = 0u; o < OWN * 2u; ++o) row_sum_[r * OWN * 2u + o] *= factor;
    row_most_[r] = most;
    weight_[(subgroup() * ROWS + r) * SUBGROUP + lane_of_subgroup()] = weight;
  }
}

void add_values() {
  [[unroll]] for (uint t = 0u; t < P; ++t) {
    const uint k = t * (SUBGROUP / P) + lane_of_subgroup() / P;
    [[unroll]] for (uint o = 0u; o < OWN; ++o) {
      const vec4 a = low4(values_[t * OWN + o]), b = high4(values_[t * OWN + o]);
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        const vec4 w = vec4(weight_[(subgroup() * ROWS + r) * SUBGROUP + k]);
        row_sum_[(r * OWN + o) * 2u] = fma(w, a, row_sum_[(r * OWN + o) * 2u]);
        row_sum_[(r * OWN + o) * 2u + 1u] = fma(w, b, row_sum_[(r * OWN + o) * 2u + 1u]);
      }
    }
  }
}

// The rows of the subgroups to shared memory.
void put_rows() {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    const float total = subgroupAdd(row_total_[r]);
    if (lane_of_subgroup() == 0u) {
      most_[subgroup() * ROWS + r] = row_most_[r];
      total_[subgroup() * ROWS + r] = total;
    }
    [[unroll]] for (uint o = 0u; o < OWN * 2u; ++o) {
      vec4 sum = row_sum_[r * OWN * 2u + o];
      for (uint d = P; d < SUBGROUP; d *= 2u) sum += subgroupShuffleXor(sum, d);
      const uint octet = lane_of_subgroup() + o / 2u * P;
      if (lane_of_subgroup() < P && octet < V8) sum_[((subgroup() * ROWS + r) * V8 + octet) * 2u + (o & 1u)] = sum;
    }
  }
}

// Octet `octet` of row r: sums so far, their weights' total, and the maximum these refer to.
struct Merged {
  vec4 low, high;
  float most, total;
};

void merge(inout Merged m, vec4 low, vec4 high, float most, float total) {
  const float now = maximum(m.most, most), base = now == -infinity() ? 0.0 : now;
  const float a = exp_or_zero(m.most, base), b = exp_or_zero(most, base);
  m = Merged(m.low * a + low * b, m.high * a + high * b, now, m.total * a + total * b);
}

Merged merge_subgroups(uint r, uint octet) {
  Merged m = Merged(vec4(0.0), vec4(0.0), -infinity(), 0.0);
  for (uint g = 0u; g < SUBGROUPS; ++g) {
    const uint row = g * ROWS + r, at = (row * V8 + octet) * 2u;
    merge(m, sum_[at], sum_[at + 1u], most_[row], total_[row]);
  }
  return m;
}

// A share of a row in the buffer of partial sums: its octets, then maximum and total.
uint partial_at(uint share, uint r) { return ((group() / params.splits * params.splits + share) * ROWS + r) * (V8 * 2u + 1u); }

Merged merge_shares(uint shares, uint r, uint octet) {
  Merged m = Merged(vec4(0.0), vec4(0.0), -infinity(), 0.0);
  for (uint i = 0u; i < shares; ++i) {
    const uint at = partial_at(i, r);
    const vec4 state = partial_[at + V8 * 2u];
    merge(m, partial_[at + octet * 2u], partial_[at + octet * 2u + 1u], state.x, state.y);
  }
  return m;
}

void store_rows(uint batch, uint kv_head, uint shares) {
  for (uint i = lane(); i < ROWS * V8; i += LANES) {
    const uint r = i / V8, octet = i % V8, head = kv_head * (params.heads / params.kv_heads) + r / params.l;
    Merged m;
    if (shares == 1u) m = merge_subgroups(r, octet);
    else m = merge_shares(shares, r, octet);
    if (SINKS) merge(m, vec4(0.0), vec4(0.0), LOAD1(DTYPE, sinks_, head), 1.0);
    const float factor = m.total == 0.0 ? 0.0 : 1.0 / m.total;
    STORE_OCTET(((batch * params.l + r % params.l) * params.heads + head) * V8 + octet, m.low * factor, m.high * factor);
  }
}

void main() {
  uint rest = group();
  const uint split = take(rest, params.splits), kv_head = take(rest, params.kv_heads), batch = rest;
  if (batch >= params.batches) return;  // the whole workgroup, here and below
  const int first = LOAD1(i32, first_, batch);
  // What is out of the caches was reported when the rows were written; it must not be read either.
  const uint live = uint(clamp(first + int(params.l), 0, int(params.s)));
  const uint oldest = params.window == 0u ? 0u : min(uint(max(first + 1 - int(params.window), 0)), live);
  const uint shares = clamp((live - oldest + LEAST - 1u) / LEAST, 1u, params.splits);
  if (split >= shares) return;
  const uint share = (live - oldest + shares - 1u) / shares, begin = oldest + split * share, end = min(begin + share, live);

  const uint head_row = (batch * params.kv_heads + kv_head) * params.s;
  load_key(head_row + min(begin + lane(), max(end, 1u) - 1u));
  for (uint i = lane(); i < ROWS * E8; i += LANES) {
    const uint r = i / E8, head = kv_head * (params.heads / params.kv_heads) + r / params.l;
    const OCTET q = q_[((batch * params.l + r % params.l) * params.heads + head) * E8 + i % E8];
    query_[i * 2u] = low4(q) * params.scale;
    query_[i * 2u + 1u] = high4(q) * params.scale;
  }
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    row_most_[r] = -infinity();
    row_total_[r] = 0.0;
  }
  [[unroll]] for (uint i = 0u; i < ROWS * OWN * 2u; ++i) row_sum_[i] = vec4(0.0);
  barrier();

  // All subgroups go round equally often, also past the end: drivers may make a barrier of the workgroup of subgroupBarrier
  // (llvmpipe of Mesa 26.1).
  for (uint all = begin; all < end; all += LANES) {
    const uint block = all + subgroup() * SUBGROUP, position = block + lane_of_subgroup();
    float score[ROWS];
    multiply_key(score);
    load_values(head_row, block, end);
    add_scores(score, position, end, first);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    load_key(head_row + min(position + LANES, end - 1u));
    add_values();
    subgroupBarrier();
  }
  put_rows();
  barrier();
  if (shares == 1u) {
    store_rows(batch, kv_head, 1u);
    return;
  }
  for (uint i = lane(); i < ROWS * V8; i += LANES) {
    const uint r = i / V8, octet = i % V8, at = partial_at(split, r);
    const Merged m = merge_subgroups(r, octet);
    partial_[at + octet * 2u] = m.low;
    partial_[at + octet * 2u + 1u] = m.high;
    if (octet == 0u) partial_[at + V8 * 2u] = vec4(m.most, m.total, 0.0, 0.0);
  }
  memoryBarrierBuffer();
  barrier();
  if (lane() == 0u) ticket_ = atomicAdd(tickets_[batch * params.kv_heads + kv_head], 1u);
  barrier();
  if (ticket_ != shares - 1u) return;
  memoryBarrierBuffer();
  store_rows(batch, kv_head, shares);
}
