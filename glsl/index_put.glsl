// SPDX-License-Identifier: Apache-2.0
// out = self, then out[o, index[p], :] = values[o, p, :] for p = 0, 1, ...: the last of equal indices counts, in any order
// of the invocations. An index out of range is reported and writes nothing.
//
// PART  UPDATE_ALL    one invocation makes a vec4 group of the output from self and values
//       UPDATE_TOUCH  the same, but out is self's storage: only vec4 groups that get a new value are written
//       UPDATE_PART   in place, and one invocation has a vec4 group of `values`; rows are whole vec4 groups
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 values, 5 table.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"

layout(constant_id = 1) const uint PART = 0;      // UPDATE_*
layout(constant_id = 2) const bool WHOLE_VEC4 = false;  // a row is whole vec4 groups
layout(constant_id = 3) const bool TABLE = false;  // index_put_last.glsl has made the table

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { WORD(BITS) self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(set = 0, binding = 4) readonly buffer Values { WORD(BITS) values_[]; };
layout(set = 0, binding = 5) readonly buffer Table { WORD(i32) table_[]; };
layout(push_constant) uniform Params {
  uint count;      // elements of the output
  uint values;     // elements of `values`
  uint positions;
  uint rows;
  uint inner;
  uint call;
} params;

const uint kNone = 0xffffffffu;

uint row_of(uint position) {
  const int given = LOAD1(i32, index_, position);
  const int row = given < 0 ? given + int(params.rows) : given;
  return row < 0 || row >= int(params.rows) ? kNone : uint(row);
}

// The last position whose index is `row`, or kNone.
uint last_position(uint row) {
  if (TABLE) return uint(LOAD1(i32, table_, row));
  uint last = kNone;
  for (uint p = 0u; p < params.positions; ++p) last = row_of(p) == row ? p : last;
  return last;
}

// Where element i of the output comes from in `values`, or kNone.
uint source(uint i) {
  uint outer = i;
  const uint column = take(outer, params.inner);
  const uint position = last_position(take(outer, params.rows));
  return position == kNone ? kNone : (outer * params.positions + position) * params.inner + column;
}

void update(uint q) {
  uvec4 v = LOAD4(BITS, self_, q);
  bool touched = PART == UPDATE_ALL;
  if (WHOLE_VEC4) {
    const uint from = source(4u * q);
    touched = touched || from != kNone;
    if (from != kNone) v = LOAD4(BITS, values_, from >> 2);
  } else {
    for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
      const uint from = source(4u * q + k);
      touched = touched || from != kNone;
      if (from != kNone) v[k] = LOAD1(BITS, values_, from);
    }
  }
  if (touched) STORE4(BITS, out_, q, v);
}

void put(uint q) {
  uint outer = 4u * q;
  const uint column = take(outer, params.inner);
  const uint position = take(outer, params.positions);
  const uint row = row_of(position);
  if (row == kNone || last_position(row) != position) return;
  const uint to = (outer * params.rows + row) * params.inner + column;
  STORE4(BITS, out_, to >> 2, LOAD4(BITS, values_, q));
}

void main() {
  const uint q = item();
  if (q < params.positions && row_of(q) == kNone) report_index(params.call, q, LOAD1(i32, index_, q), int(params.rows));
  if (PART == UPDATE_PART) {
    if (4u * q < params.values) put(q);
  } else {
    if (4u * q < params.count) update(q);
  }
}
