// SPDX-License-Identifier: Apache-2.0
// table[row] = the last position whose index is `row`, or -1. An invocation searches for a row, with TOGETHER a workgroup.
// Bindings: 0 table, 1 index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const bool TOGETHER = false;

layout(set = 0, binding = 0) writeonly buffer Table { WORD(i32) table_[]; };
layout(set = 0, binding = 1) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint positions;
  uint rows;
} params;

shared int last_;

// Of positions first, first + step, ...
int last_position(int row, uint first, uint step) {
  int last = -1;
  for (uint p = first; p < params.positions; p += step) {
    const int given = LOAD1(i32, index_, p);
    if (given == row || given + int(params.rows) == row) last = int(p);
  }
  return last;
}

void main() {
  const int row = int(TOGETHER ? group() : item());
  if (row >= int(params.rows)) return;
  if (!TOGETHER) {
    STORE1(i32, table_, uint(row), last_position(row, 0u, 1u));
    return;
  }
  if (lane() == 0u) last_ = -1;
  barrier();
  atomicMax(last_, last_position(row, lane(), LANES));
  barrier();
  if (lane() == 0u) STORE1(i32, table_, uint(row), last_);
}
