// SPDX-License-Identifier: Apache-2.0
// out[c] = in[c with coordinate `dim` replaced by index[c]] (torch.gather). An index out of range is reported and reads row 0. One
// invocation moves a vec4 group.
// Bindings: 0 out, 1 status, 2 in, 3 index.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer In { WORD(BITS) in_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint rank;
  uint rows;        // size of the input's dimension `dim`
  uint row_stride;  // and its stride
  uint call;
  uint size[8];     // of the index
  uint stride[8];   // of the input, 0 for `dim`
} params;

uint load(uint i) {
  const int given = LOAD1(i32, index_, i);
  int row = given < 0 ? given + int(params.rows) : given;
  if (row < 0 || row >= int(params.rows)) {
    report_index(params.call, i, given, int(params.rows));
    row = 0;
  }
  uint from = uint(row) * params.row_stride, rest = i;
  for (uint d = params.rank; d-- > 0u;) from += take(rest, params.size[d]) * params.stride[d];
  return LOAD1(BITS, in_, from);
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  uvec4 v;
  for (uint k = 0u; k < 4u; ++k) v[k] = load(min(4u * q + k, params.count - 1u));
  STORE4(BITS, out_, q, v);
}
