// SPDX-License-Identifier: Apache-2.0
// out[i, :] = weight[index[i], :]. An index outside of 0 .. rows-1 is reported and reads row 0. One invocation computes a vec4 group
// of the output.
// Bindings: 0 out, 1 status, 2 weight, 3 index.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint count;     // of out
  uint position;  // of the first index
  uint rows;      // of the table
  uint first;     // row of weight_
  uint block;     // rows of weight_
  uint columns;
  uint call;
} params;
layout(constant_id = 1) const uint BLOCKS = 0u;  // other dispatches write the rows of other blocks
#include "core/embedding_rows.glslh"

void main() {
  const uint q = item(), first = 4u * q;
  if (first >= params.count) return;
  const uint position = first / params.columns, column = first - position * params.columns;
  if (params.columns % 4u == 0u) {
    const uint row = row_of(position);
    if (row < params.block) out_[q] = weight_[(row * params.columns + column) >> 2];
    return;
  }
  vec4 v = vec4(0.0);
  for (uint i = 0u; i < min(4u, params.count - first); ++i) {
    const uint at = (first + i) / params.columns, row = row_of(at);
    if (row < params.block) v[i] = LOAD1(DTYPE, weight_, row * params.columns + (first + i - at * params.columns));
    if (BLOCKS != 0u && row < params.block) store_one(first + i, v[i]);
  }
  if (BLOCKS == 0u) STORE4(DTYPE, out_, q, v);
}
