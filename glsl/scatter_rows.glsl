// SPDX-License-Identifier: Apache-2.0
// scatter_add of f32 whose rows fit in shared memory: out[r, j] = self[r, j] + src[r, p] for every p with index[r, p] = j, added one
// after the other in the order of p, as ops/scatter.cpp has it. A workgroup has a row, whose sums are in shared memory, and takes its
// indices LANES at a time: of the invocations with one index the first one adds, in each of up to kRounds rounds; what is left then,
// of indices that are nearly all equal, is added by one invocation. An index out of range is reported and adds nothing.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 pairs (of the other kernel), 5 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint EXTENT = 1u;  // of a row of the output
layout(constant_id = 2) const bool CPU = false;  // which takes a load of what others have written out of order, an atomic not

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { uvec4 self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { uvec4 index_[]; };
layout(set = 0, binding = 4) readonly buffer Pairs { uvec2 pairs_[]; };
layout(set = 0, binding = 5) readonly buffer Src { uvec4 src_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint indices;  // of a row
  uint terms;    // of a row of src, of which the first `indices` count
  uint inner;    // distance between neighbouring elements of a row
  uint call;
} params;

const uint kNobody = 0xffffffffu;
const uint kRounds = 16u;
shared float sums_[EXTENT];
shared uint first_[EXTENT];  // the first invocation that waits to add here
shared uint keys_[gl_WorkGroupSize.x];
shared float terms_[gl_WorkGroupSize.x];
shared uint left_;

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uint slab = row / params.inner, from = row % params.inner;
  const uint base = slab * EXTENT * params.inner + from;
  for (uint j = lane(); j < EXTENT; j += LANES) {
    sums_[j] = LOAD1(f32, self_, base + j * params.inner);
    first_[j] = kNobody;
  }
  barrier();
  for (uint begin = 0u; begin < params.indices; begin += LANES) {
    const uint p = begin + lane();
    bool waits = p < params.indices;
    uint key = 0u;
    float term = 0.0;
    if (waits) {
      const uint at = (slab * params.indices + p) * params.inner + from;
      const int given = LOAD1(i32, index_, at);
      term = LOAD1(f32, src_, (slab * params.terms + p) * params.inner + from);
      waits = given >= 0 && given < int(EXTENT);
      if (waits) key = uint(given);
      else report_index(params.call, at, given, int(EXTENT));
    }
    bool more = true;
    for (uint round = 0u; more && round < kRounds; ++round) {
      if (lane() == 0u) left_ = 0u;
      if (waits) atomicMin(first_[key], lane());
      barrier();
      const bool mine = waits && (CPU ? atomicOr(first_[key], 0u) : first_[key]) == lane();
      if (waits && !mine) atomicOr(left_, 1u);
      barrier();
      more = (CPU ? atomicOr(left_, 0u) : left_) != 0u;
      if (mine) {
        sums_[key] += term;
        first_[key] = kNobody;
        waits = false;
      }
      barrier();
    }
    if (!more) continue;
    keys_[lane()] = waits ? key : kNobody;
    terms_[lane()] = term;
    barrier();
    if (lane() == 0u) {
      for (uint l = 0u; l < LANES; ++l)
        if (keys_[l] != kNobody) sums_[keys_[l]] += terms_[l];
    }
    if (waits) first_[key] = kNobody;
    barrier();
  }
  for (uint j = lane(); j < EXTENT; j += LANES) STORE1(f32, out_, base + j * params.inner, sums_[j]);
}
