// SPDX-License-Identifier: Apache-2.0
// What comes before attention over caches: norm and rotation of the new queries and keys, and new rows of the caches.
//   x      = the head's part of a row of q, k or v
//   x      = x * rsqrt(mean(x^2) + eps) * weight                           of q with Q_NORM, of k with K_NORM
//   x[i]   = x[i] * cos[i] + sin[i] * (i < R/2 ? -x[i + R/2] : x[i - R/2])   i < R, of q and k with ROPE
// PER lanes have a head of a row: each has one vec4 group of it. All arithmetic is fp32; results are rounded once.
// With COPY the caches are not written in place: the rows that do not change are copied.
// It also clears the tickets of cached_attention.glsl.
// Bindings: 0 key cache, 1 value cache, 2 q, 3 tickets, 4 status, 5 and 6 the old caches, 7 q, 8 k, 9 v, 10 first, 11 cos, 12 sin,
// 13 q's norm weight, 14 k's.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint PER = 16u;  // a power of two, at most LANES; 4 * PER elements hold a head
layout(constant_id = 2) const bool ROPE = true;
layout(constant_id = 3) const bool Q_NORM = false;
layout(constant_id = 4) const bool K_NORM = false;
layout(constant_id = 5) const bool COPY = false;

layout(set = 0, binding = 0) writeonly buffer KeyCache { WORD(DTYPE) key_cache_[]; };
layout(set = 0, binding = 1) writeonly buffer ValueCache { WORD(DTYPE) value_cache_[]; };
layout(set = 0, binding = 2) writeonly buffer Rotated { WORD(DTYPE) rotated_[]; };
layout(set = 0, binding = 3) writeonly buffer Tickets { uvec4 tickets_[]; };
#define STATUS_BINDING 4
#include "core/status.glslh"
layout(set = 0, binding = 5) readonly buffer OldKeys { WORD(DTYPE) old_keys_[]; };
layout(set = 0, binding = 6) readonly buffer OldValues { WORD(DTYPE) old_values_[]; };
layout(set = 0, binding = 7) readonly buffer Q { WORD(DTYPE) q_[]; };
layout(set = 0, binding = 8) readonly buffer K { WORD(DTYPE) k_[]; };
layout(set = 0, binding = 9) readonly buffer V { WORD(DTYPE) v_[]; };
layout(set = 0, binding = 10) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = 11) readonly buffer Cos { WORD(DTYPE) cos_[]; };
layout(set = 0, binding = 12) readonly buffer Sin { WORD(DTYPE) sin_[]; };
layout(set = 0, binding = 13) readonly buffer QNorm { WORD(DTYPE) q_norm_[]; };
layout(set = 0, binding = 14) readonly buffer KNorm { WORD(DTYPE) k_norm_[]; };
layout(push_constant) uniform Params {
  uint batches;
  uint l;          // new rows of a sequence
  uint heads;      // of q
  uint kv_heads;   // of k and v
  uint e4;         // vec4 groups of a head of q and k
  uint f4;         // of v
  uint s;          // rows of a cache
  uint rotated;    // R
  float eps;
  uint q_row;      // vec4 groups from a row of q to the next
  uint q_begin;    // vec4 groups before its first head
  uint k_row;
  uint k_begin;
  uint v_row;
  uint v_begin;
  uint angle_batch;  // elements of cos from a sequence to the next, 0 when all share them
  uint tickets;      // vec4 groups
  uint call;
} params;

#define HEADS (LANES / PER)  // of a workgroup
shared float x_[LANES * 4u];
shared float sums_[LANES];

// The sum of x over the lanes of a head; every lane of the workgroup calls it.
float head_sum(float x) {
  sums_[lane()] = x;
  barrier();
  for (uint n = PER / 2u; n > 0u; n /= 2u) {
    if (lane() % PER < n) sums_[lane()] += sums_[lane() + n];
    barrier();
  }
  return sums_[lane() / PER * PER];
}

vec4 norm_weight(bool query, uint column) {
  return query ? LOAD4(DTYPE, q_norm_, column) : LOAD4(DTYPE, k_norm_, column);
}

vec4 rotate(vec4 x, uint column, uint angle) {
  for (uint j = 0u; j < 4u; ++j) {
    const uint i = 4u * column + j, half_r = params.rotated / 2u, own = lane() / PER * PER * 4u;
    if (i < params.rotated) {
      const float other = i < half_r ? -x_[own + i + half_r] : x_[own + i - half_r];
      x[j] = x[j] * LOAD1(DTYPE, cos_, angle + i) + other * LOAD1(DTYPE, sin_, angle + i);
    }
  }
  return x;
}

// Copies vec4 group q of both caches, where it is in no new row.
void copy(uint q) {
  const uint keys = params.batches * params.kv_heads * params.s * params.e4;
  const bool key = q < keys;
  uint rest = key ? q : q - keys;
  take(rest, key ? params.e4 : params.f4);
  const uint row = take(rest, params.s), batch = rest / params.kv_heads;
  if (batch >= params.batches) return;
  const int first = LOAD1(i32, first_, batch);
  if (int(row) >= first && int(row) < first + int(params.l)) return;
  if (key) key_cache_[q] = old_keys_[q];
  if (!key) value_cache_[q - keys] = old_values_[q - keys];
}

void main() {
  if (item() < params.tickets) tickets_[item()] = uvec4(0u);
  if (COPY) copy(item());

  const uint all_heads = params.heads + 2u * params.kv_heads, column = lane() % PER;
  uint place = group() * HEADS + lane() / PER;
  const bool live = place < params.batches * params.l * all_heads;
  const uint slot = take(place, all_heads), row = take(place, params.l), batch = min(place, params.batches - 1u);
  const bool query = slot < params.heads, value = slot >= params.heads + params.kv_heads;
  const uint width = value ? params.f4 : params.e4, input_row = batch * params.l + row;
  const uint head = query ? slot : value ? slot - params.heads - params.kv_heads : slot - params.heads;

  vec4 x = vec4(0.0);
  if (live && column < width) {
    const uint at = head * width + column;
    if (query) x = LOAD4(DTYPE, q_, input_row * params.q_row + params.q_begin + at);
    else if (value) x = LOAD4(DTYPE, v_, input_row * params.v_row + params.v_begin + at);
    else x = LOAD4(DTYPE, k_, input_row * params.k_row + params.k_begin + at);
  }
  if (Q_NORM || K_NORM) {
    const float mean = head_sum(dot(x, x)) / float(4u * params.e4);
    if (!value && (query ? Q_NORM : K_NORM) && column < width) x *= safe_rsqrt(mean + params.eps) * norm_weight(query, column);
  }
  if (ROPE) {
    for (uint j = 0u; j < 4u; ++j) x_[lane() * 4u + j] = x[j];
    barrier();
    if (!value && column < width) x = rotate(x, column, batch * params.angle_batch + row * params.rotated);
  }
  if (!live || column >= width) return;
  if (query) {
    STORE4(DTYPE, rotated_, (input_row * params.heads + head) * width + column, x);
    return;
  }
  const int first = LOAD1(i32, first_, batch);
  if (first < 0 || first > int(params.s - params.l)) {  // no row is written then
    if (row == (first < 0 ? 0u : params.l - 1u)) report_index(params.call, input_row, first + int(row), int(params.s));
    return;
  }
  const uint to = ((batch * params.kv_heads + head) * params.s + uint(first) + row) * width + column;
  if (value) STORE4(DTYPE, value_cache_, to, x);
  else STORE4(DTYPE, key_cache_, to, x);
}
