// SPDX-License-Identifier: Apache-2.0
// out = self, then out[o, index[p], :] += values[o, p, :] for p = 0, 1, ... One invocation adds up a vec4 group of the output in
// that order, in fp32, int32 or int64, so the result does not depend on the order of invocations. An index out of range is
// reported and adds nothing. For i64 a sum that does not fit in 32 bits is reported.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 values.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 i64
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
#include "math/sum.glslh"
layout(set = 0, binding = 2) readonly buffer Self { WORD(DTYPE) self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(set = 0, binding = 4) readonly buffer Values { WORD(DTYPE) values_[]; };
layout(push_constant) uniform Params {
  uint count;  // elements of the output
  uint positions;
  uint rows;
  uint inner;
  uint call;
} params;

int row_of(uint position) {
  const int given = LOAD1(i32, index_, position);
  return given < 0 ? given + int(params.rows) : given;
}

void main() {
  const uint q = item();
  if (q < params.positions) {
    const int row = row_of(q);
    if (row < 0 || row >= int(params.rows)) {
      report_index(params.call, q, LOAD1(i32, index_, q), int(params.rows));
    }
  }
  if (4u * q >= params.count) return;
  VEC(DTYPE) v = LOAD4(DTYPE, self_, q);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
    uint outer = 4u * q + k;
    const uint column = take(outer, params.inner);
    const int row = int(take(outer, params.rows));
    SUM sum = widen(v[k]);
    for (uint p = 0u; p < params.positions; ++p) {
      if (row_of(p) != row) continue;
      sum = plus(sum, widen(LOAD1(DTYPE, values_, (outer * params.positions + p) * params.inner + column)));
    }
    v[k] = element(sum, 4u * q + k);
  }
  STORE4(DTYPE, out_, q, v);
}
