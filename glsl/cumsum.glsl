// SPDX-License-Identifier: Apache-2.0
// out[.., j, ..] = in[.., 0, ..] + ... + in[.., j, ..] along one dimension. A workgroup runs along a row, LANES
// elements a time: a scan in shared memory, and the sum of all before.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 i32
#include "launch.glslh"
#include "types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint extent;
  uint inner;  // distance of two elements of a row
} params;

shared ONE(DTYPE) sums_[gl_WorkGroupSize.x];

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uint base = row / params.inner * params.extent * params.inner + row % params.inner;
  ONE(DTYPE) before = ONE(DTYPE)(0);
  for (uint begin = 0u; begin < params.extent; begin += LANES) {
    const uint j = begin + lane();
    const uint i = base + j * params.inner;
    ONE(DTYPE) sum = ONE(DTYPE)(0);
    if (j < params.extent) sum = LOAD1(DTYPE, in_, i);
    sums_[lane()] = sum;
    barrier();
    for (uint step = 1u; step < LANES; step *= 2u) {
      if (lane() >= step) sum += sums_[lane() - step];
      barrier();
      sums_[lane()] = sum;
      barrier();
    }
    if (j < params.extent) STORE1(DTYPE, out_, i, before + sum);
    before += sums_[LANES - 1u];
    barrier();
  }
}
