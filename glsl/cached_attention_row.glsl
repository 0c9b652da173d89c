// SPDX-License-Identifier: Apache-2.0
// One new row of each sequence: its queries and key normed and rotated (attention/prepare.glslh), its key and value written to the
// caches, and its attention (attention/few_rows.glslh), in one dispatch. Every workgroup prepares the queries that it needs; the
// one whose share has the new position also writes the row, and reads it from shared memory.
// Bindings: 0 out, 1 partial sums, 2 tickets, 3 key cache, 4 value cache, of bytes: scales, then status, q, k, v, first, cos, sin, q's
// norm weight, k's, sinks.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/half_round.glslh"
#include "math/math.glslh"
#include "attention/octets.glslh"

layout(constant_id = 8) const uint PER = 16u;  // a power of two, at most LANES; 4 * PER elements hold a head
layout(constant_id = 9) const bool ROPE = true;
layout(constant_id = 10) const bool Q_NORM = false;
layout(constant_id = 11) const bool K_NORM = false;
layout(constant_id = 12) const bool TABLES = false;
layout(constant_id = 13) const bool INTERLEAVED = false;

layout(set = 0, binding = 0) writeonly buffer Out { OCTET out_[]; };
layout(set = 0, binding = 1) coherent buffer Partial { vec4 partial_[]; };
layout(set = 0, binding = 2) coherent buffer Tickets { uint tickets_[]; };
layout(set = 0, binding = 3) buffer KeyCache { CACHE_OCTET key_cache_[]; };
layout(set = 0, binding = 4) buffer ValueCache { CACHE_OCTET value_cache_[]; };
#if defined(CACHE_i8)
layout(set = 0, binding = 5) buffer Scales { uvec2 scales_[]; };  // of each row of a head: of its key, of its value
#define STATUS_BINDING 6
#else
#define STATUS_BINDING 5
#endif
#include "core/status.glslh"
layout(set = 0, binding = STATUS_BINDING + 1) readonly buffer Q { WORD(DTYPE) q_[]; };
layout(set = 0, binding = STATUS_BINDING + 2) readonly buffer K { WORD(DTYPE) k_[]; };
layout(set = 0, binding = STATUS_BINDING + 3) readonly buffer V { WORD(DTYPE) v_[]; };
layout(set = 0, binding = STATUS_BINDING + 4) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = STATUS_BINDING + 5) readonly buffer Cos { WORD(DTYPE) cos_[]; };
layout(set = 0, binding = STATUS_BINDING + 6) readonly buffer Sin { WORD(DTYPE) sin_[]; };
layout(set = 0, binding = STATUS_BINDING + 7) readonly buffer QNorm { WORD(DTYPE) q_norm_[]; };
layout(set = 0, binding = STATUS_BINDING + 8) readonly buffer KNorm { WORD(DTYPE) k_norm_[]; };
layout(set = 0, binding = STATUS_BINDING + 9) readonly buffer Sinks { WORD(DTYPE) sinks_[]; };
layout(push_constant) uniform Params {
  uint batches;
  uint heads;     // of q
  uint kv_heads;  // of the caches
  uint s;         // rows of a cache
  uint splits;    // workgroups of a head of a cache
  float scale;
  uint window;    // positions that a row sees; 0: all before it
  float softcap;  // 0: none
  uint rotated;   // R
  float eps;
  uint q_row;     // vec4 groups from a row of q to the next
  uint q_begin;   // vec4 groups before its first head
  uint k_row;
  uint k_begin;
  uint v_row;
  uint v_begin;
  uint angle_batch;  // elements of cos from a sequence to the next, 0 when all share them
  uint angle_rows;   // of cos
  uint call;
} params;

#define NEW_ROWS 1u
#define NEWEST_IN_SHARED
#include "attention/few_rows.glslh"
#include "attention/prepare.glslh"
#if defined(CACHE_i8)
#include "attention/int8_rows.glslh"
#endif

vec4 new_query(uint batch, uint at) { return LOAD4(DTYPE, q_, batch * params.q_row + params.q_begin + at); }
vec4 new_key(uint batch, uint at) { return LOAD4(DTYPE, k_, batch * params.k_row + params.k_begin + at); }
vec4 new_value(uint batch, uint at) { return LOAD4(DTYPE, v_, batch * params.v_row + params.v_begin + at); }
#include "attention/new_row.glslh"

void main() {
  Share share;
  if (!share_of_workgroup(share)) return;  // the whole workgroup, here and below
  if (share.first < 0 || share.first >= int(params.s)) {  // nothing is written then
    if (share.split == 0u && share.kv_head == 0u && lane() == 0u)
      report_index(params.call, share.batch, share.first, int(params.s));
    return;
  }
  load_first_key(share);
  prepare_row(share);
  if (uint(share.first) >= share.begin && uint(share.first) < share.end) write_row(share);
  attend(share);
}
