// SPDX-License-Identifier: Apache-2.0
// out[i, :] = weight[index[i], :]. An index outside of 0 .. rows-1 is reported and reads row 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "launch.glslh"
#include "types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#define STATUS_BINDING 1
#include "status.glslh"
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint count;    // of out
  uint rows;     // of weight
  uint columns;
  uint call;
} params;

uint row_of(uint position) {
  const int row = LOAD1(i32, index_, position);
  if (row >= 0 && uint(row) < params.rows) return uint(row);
  report_index(params.call, position, row, int(params.rows));
  return 0u;
}

void main() {
  const uint q = item(), first = 4u * q;
  if (first >= params.count) return;
  const uint position = first / params.columns, column = first - position * params.columns;
  if (params.columns % 4u == 0u) {
    out_[q] = weight_[(row_of(position) * params.columns + column) >> 2];
    return;
  }
  vec4 v = vec4(0.0);
  for (uint i = 0u; i < min(4u, params.count - first); ++i) {
    const uint at = (first + i) / params.columns;
    v[i] = LOAD1(DTYPE, weight_, row_of(at) * params.columns + (first + i - at * params.columns));
  }
  STORE4(DTYPE, out_, q, v);
}
