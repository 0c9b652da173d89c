// SPDX-License-Identifier: Apache-2.0
// out = self, then out[o, index[p], :] += values[o, p, :] for p = 0, 1, ... in fp32, int32 or int64. An index out of range is
// reported and adds nothing. For i64 a sum that does not fit in 32 bits is reported.
//
// An invocation adds up a vec4 group of the output in that order; with TOGETHER a workgroup does, each lane from every LANES-th
// position: then lanes are added, halves of them at a time. Neither depends on the order of invocations.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 values.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 i64
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const bool TOGETHER = false;

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

const uint kChecks = 1024u;  // workgroups that check indices, at most

shared SUM sums_[gl_WorkGroupSize.x];

int row_of(uint position) {
  const int given = LOAD1(i32, index_, position);
  return given < 0 ? given + int(params.rows) : given;
}

void check(uint position) {
  const int row = row_of(position);
  if (row < 0 || row >= int(params.rows))
    report_index(params.call, position, LOAD1(i32, index_, position), int(params.rows));
}

// sum and what positions first, first + step, ... add to element i.
SUM added(SUM sum, uint i, uint first, uint step) {
  uint outer = i;
  const uint column = take(outer, params.inner);
  const int row = int(take(outer, params.rows));
  for (uint p = first; p < params.positions; p += step) {
    if (row_of(p) != row) continue;
    sum = plus(sum, widen(LOAD1(DTYPE, values_, (outer * params.positions + p) * params.inner + column)));
  }
  return sum;
}

// The sum over the lanes, in lane 0.
SUM total(SUM sum) {
  sums_[lane()] = sum;
  barrier();
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    if (lane() < step) sums_[lane()] = plus(sums_[lane()], sums_[lane() + step]);
    barrier();
  }
  return sums_[0];
}

void add_together(uint q) {
  if (4u * q >= params.count) return;
  const uint checks = min((params.count + 3u) / 4u, kChecks);
  if (q < checks) for (uint p = q * LANES + lane(); p < params.positions; p += checks * LANES) check(p);
  VEC(DTYPE) v = LOAD4(DTYPE, self_, q);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
    const SUM sum = total(added(SUM(0), 4u * q + k, lane(), LANES));
    if (lane() == 0u) v[k] = element(plus(widen(v[k]), sum), 4u * q + k);
    barrier();
  }
  if (lane() == 0u) STORE4(DTYPE, out_, q, v);
}

void main() {
  if (TOGETHER) {
    add_together(group());
    return;
  }
  const uint q = item();
  if (q < params.positions) check(q);
  if (4u * q >= params.count) return;
  VEC(DTYPE) v = LOAD4(DTYPE, self_, q);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k)
    v[k] = element(added(widen(v[k]), 4u * q + k, 0u, 1u), 4u * q + k);
  STORE4(DTYPE, out_, q, v);
}
