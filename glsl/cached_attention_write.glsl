// SPDX-License-Identifier: Apache-2.0
// What comes before attention over caches: norm and rotation of the new queries and keys, and new rows of the caches.
// PER lanes have a head of a row of q, k or v: each has one vec4 group of it (attention/prepare.glslh). Results are rounded once.
// With COPY the caches are not written in place: the rows that do not change are copied.
// Bindings: 0 key cache, 1 value cache, of bytes: scales, then q, status, the old caches and scales, q, k, v, first, cos, sin, q's norm
// weight, k's.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint PER = 16u;  // a power of two, at most LANES; 4 * PER elements hold a head
layout(constant_id = 2) const bool ROPE = true;
layout(constant_id = 3) const bool Q_NORM = false;
layout(constant_id = 4) const bool K_NORM = false;
layout(constant_id = 5) const bool COPY = false;
layout(constant_id = 6) const bool TABLES = false;
layout(constant_id = 7) const bool INTERLEAVED = false;

#if defined(CACHE_i8)
#define ELEMENT i8
#define SCALES 1
layout(set = 0, binding = 2) writeonly buffer Scales { uint scales_[]; };  // [row of a head][of its key, of its value]
layout(set = 0, binding = 7) readonly buffer OldScales { uint old_scales_[]; };
#else
#define ELEMENT DTYPE
#define SCALES 0
#endif
#define STATUS_BINDING (3 + SCALES)
#define INPUTS (6 + 2 * SCALES)
layout(set = 0, binding = 0) writeonly buffer KeyCache { WORD(ELEMENT) key_cache_[]; };
layout(set = 0, binding = 1) writeonly buffer ValueCache { WORD(ELEMENT) value_cache_[]; };
layout(set = 0, binding = 2 + SCALES) writeonly buffer Rotated { WORD(DTYPE) rotated_[]; };
#include "core/status.glslh"
layout(set = 0, binding = 4 + SCALES) readonly buffer OldKeys { WORD(ELEMENT) old_keys_[]; };
layout(set = 0, binding = 5 + SCALES) readonly buffer OldValues { WORD(ELEMENT) old_values_[]; };
layout(set = 0, binding = INPUTS) readonly buffer Q { WORD(DTYPE) q_[]; };
layout(set = 0, binding = INPUTS + 1) readonly buffer K { WORD(DTYPE) k_[]; };
layout(set = 0, binding = INPUTS + 2) readonly buffer V { WORD(DTYPE) v_[]; };
layout(set = 0, binding = INPUTS + 3) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = INPUTS + 4) readonly buffer Cos { WORD(DTYPE) cos_[]; };
layout(set = 0, binding = INPUTS + 5) readonly buffer Sin { WORD(DTYPE) sin_[]; };
layout(set = 0, binding = INPUTS + 6) readonly buffer QNorm { WORD(DTYPE) q_norm_[]; };
layout(set = 0, binding = INPUTS + 7) readonly buffer KNorm { WORD(DTYPE) k_norm_[]; };
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
  uint angle_rows;   // of cos
  uint call;
} params;

#include "attention/prepare.glslh"
#if defined(CACHE_i8)
#include "attention/int8_rows.glslh"
#endif

// Copies vec4 group q of both caches, where it is in no new row.
void copy(uint q) {
  const uint keys = params.batches * params.kv_heads * params.s * params.e4;
  const bool key = q < keys;
  uint rest = key ? q : q - keys;
  const uint column = take(rest, key ? params.e4 : params.f4), scale = rest;
  const uint row = take(rest, params.s), batch = rest / params.kv_heads;
  if (batch >= params.batches) return;
  const int first = LOAD1(i32, first_, batch);
  if (int(row) >= first && int(row) < first + int(params.l)) return;
  if (key) key_cache_[q] = old_keys_[q];
  if (!key) value_cache_[q - keys] = old_values_[q - keys];
#if defined(CACHE_i8)
  if (column == 0u) scales_[scale * 2u + uint(!key)] = old_scales_[scale * 2u + uint(!key)];
#endif
}

void main() {
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
  const int first = LOAD1(i32, first_, batch);
  x = prepare(x, angles_of(live && !value && column < width, column, batch, row, first), query, !query && !value, column, width);
#if defined(CACHE_i8)
#if defined(DTYPE_f16)
  x = half_round(x);  // as where the row is attended to at once (cached_attention_row.glsl)
#endif
  const float scale = row_scale(x);  // of what is 0 after the end of the head
#endif
  if (!live || column >= width) return;
  if (query) {
    STORE4(DTYPE, rotated_, (input_row * params.heads + head) * width + column, x);
    return;
  }
  if (first < 0 || first > int(params.s - params.l)) {  // no row is written then
    if (row == (first < 0 ? 0u : params.l - 1u)) report_index(params.call, input_row, first + int(row), int(params.s));
    return;
  }
  const uint to_row = (batch * params.kv_heads + head) * params.s + uint(first) + row, to = to_row * width + column;
#if defined(CACHE_i8)
  const ivec4 y = ivec4(to_bytes(x, scale));
  if (column == 0u) scales_[to_row * 2u + uint(value)] = floatBitsToUint(scale);
#else
  const vec4 y = x;
#endif
  if (value) STORE4(ELEMENT, value_cache_, to, y);
  else STORE4(ELEMENT, key_cache_, to, y);
}
