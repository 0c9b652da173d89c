// SPDX-License-Identifier: Apache-2.0
// table[row] = the last position whose index is `row`, or -1. One invocation searches for one row.
// Bindings: 0 table, 1 index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Table { WORD(i32) table_[]; };
layout(set = 0, binding = 1) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint positions;
  uint rows;
} params;

void main() {
  const int row = int(item());
  const int rows = int(params.rows);
  if (row >= rows) return;
  int last = -1;
  for (uint p = 0u; p < params.positions; ++p) {
    const int given = LOAD1(i32, index_, p);
    if (given == row || given + rows == row) last = int(p);
  }
  STORE1(i32, table_, uint(row), last);
}
