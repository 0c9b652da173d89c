// SPDX-License-Identifier: Apache-2.0
// Attention of few new rows over caches that already have their keys and values: attention/few_rows.glslh.
// Bindings: 0 out, 1 partial sums, 2 tickets, 3 q, 4 key cache, 5 value cache, 6 first, 7 sinks, 8 scales (of caches of bytes).
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#pragma variant CACHE own i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"
#include "attention/octets.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { OCTET out_[]; };
layout(set = 0, binding = 1) coherent buffer Partial { vec4 partial_[]; };
layout(set = 0, binding = 2) coherent buffer Tickets { uint tickets_[]; };
layout(set = 0, binding = 3) readonly buffer Q { OCTET q_[]; };
layout(set = 0, binding = 4) readonly buffer KeyCache { CACHE_OCTET key_cache_[]; };
layout(set = 0, binding = 5) readonly buffer ValueCache { CACHE_OCTET value_cache_[]; };
layout(set = 0, binding = 6) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = 7) readonly buffer Sinks { WORD(DTYPE) sinks_[]; };
#if defined(CACHE_i8)
layout(set = 0, binding = 8) readonly buffer Scales { uvec2 scales_[]; };  // of each row of a head: of its key, of its value
#endif
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

#define NEW_ROWS params.l
#include "attention/few_rows.glslh"

void main() {
  Share share;
  if (!share_of_workgroup(share)) return;  // the whole workgroup
  load_first_key(share);
  for (uint i = lane(); i < ROWS * E8; i += LANES) {
    const uint r = i / E8, head = share.kv_head * (params.heads / params.kv_heads) + r / NEW_ROWS;
    const OCTET q = q_[((share.batch * NEW_ROWS + r % NEW_ROWS) * params.heads + head) * E8 + i % E8];
    query_[i * 2u] = low4(q) * QUERY_SCALE;
    query_[i * 2u + 1u] = high4(q) * QUERY_SCALE;
  }
  attend(share);
}
