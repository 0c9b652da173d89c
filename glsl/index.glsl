// SPDX-License-Identifier: Apache-2.0
// out[o, p, :] = in[o, index[p], :]: rows selected by an index; negative indices count from the end. One out of range is reported
// and reads row 0. One invocation moves a vec4 group.
// Bindings: 0 out, 1 status, 2 in, 3 index.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(constant_id = 1) const bool WHOLE_VEC4 = false;  // a row is whole vec4 groups

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer In { WORD(BITS) in_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint positions;
  uint rows;   // that an index may select
  uint inner;  // elements of a row
  uint call;
} params;

// WHOLE_VEC4: loads the elements i .. i+3; else element i, repeated.
uvec4 load(uint i) {
  uint outer = i;
  const uint column = take(outer, params.inner);
  const uint position = take(outer, params.positions);
  const int given = LOAD1(i32, index_, position);
  int row = given < 0 ? given + int(params.rows) : given;
  if (row < 0 || row >= int(params.rows)) {
    report_index(params.call, position, given, int(params.rows));
    row = 0;
  }
  const uint from = (outer * params.rows + uint(row)) * params.inner + column;
  return WHOLE_VEC4 ? LOAD4(BITS, in_, from >> 2) : uvec4(LOAD1(BITS, in_, from));
}

void main() {
  const uint q = item();
  const uint i = 4u * q;
  if (i >= params.count) return;
  uvec4 v = load(i);
  if (!WHOLE_VEC4) {
    for (uint k = 1u; k < 4u; ++k) v[k] = load(min(i + k, params.count - 1u)).x;
  }
  STORE4(BITS, out_, q, v);
}
