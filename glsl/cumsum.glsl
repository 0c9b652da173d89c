// SPDX-License-Identifier: Apache-2.0
// out[.., j, ..] = in[.., 0, ..] + ... + in[.., j, ..] along one dimension. A workgroup has a row, LANES elements at a time: a scan
// in shared memory, plus the sum of all elements before. i64 is summed in 64 bits; a sum that does not fit in 32 is reported.
// Bindings: 0 out, then status for i64, then in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 i32 i64
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#ifdef DTYPE_i64
#define REPORTS
#endif
#include "core/reports.glslh"
#include "math/sum.glslh"
layout(set = 0, binding = READS) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint extent;
  uint inner;  // distance between neighbouring elements of a row
  uint call;
} params;

shared SUM sums_[gl_WorkGroupSize.x];

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uint base = row / params.inner * params.extent * params.inner + row % params.inner;
  SUM before = SUM(0);
  for (uint begin = 0u; begin < params.extent; begin += LANES) {
    const uint j = begin + lane();
    const uint i = base + j * params.inner;
    SUM sum = SUM(0);
    if (j < params.extent) sum = widen(LOAD1(DTYPE, in_, i));
    sums_[lane()] = sum;
    barrier();
    for (uint step = 1u; step < LANES; step *= 2u) {
      if (lane() >= step) sum = plus(sum, sums_[lane() - step]);
      barrier();
      sums_[lane()] = sum;
      barrier();
    }
    if (j < params.extent) STORE1(DTYPE, out_, i, element(plus(before, sum), i));
    before = plus(before, sums_[LANES - 1u]);
    barrier();
  }
}
