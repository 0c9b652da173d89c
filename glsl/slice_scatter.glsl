// SPDX-License-Identifier: Apache-2.0
// out = self, but out[o, start + k * step, :] = source[o, k, :] for k = 0 .. extent-1. One invocation has a vec4 group of the output.
//
// PART  UPDATE_ALL    every vec4 group is written
//       UPDATE_TOUCH  out is self's storage: every group is visited, those with new elements are written
//       UPDATE_PART   in place, and only the part from `begin` to `end` of each slab (all elements of one `o`) is visited; slabs are
//                     whole vec4 groups
// Bindings: 0 out, 1 self, 2 source.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"

layout(constant_id = 1) const uint PART = 0;  // UPDATE_*

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer Self { WORD(BITS) self_[]; };
layout(set = 0, binding = 2) readonly buffer Source { WORD(BITS) source_[]; };
layout(push_constant) uniform Params {
  uint count;       // elements of the output
  uint items;
  uint slab;        // elements for one `o`
  uint begin;       // of the slice in a slab, in elements
  uint end;
  uint inner;
  uint step;
  uint extent;
  uint part_vec4s;  // of a slab that UPDATE_PART visits
} params;

const uint kNone = 0xffffffffu;

// Where element i of the output comes from in the source, or kNone.
uint source(uint i) {
  uint outer = i;
  const uint at = take(outer, params.slab);
  if (at < params.begin || at >= params.end) return kNone;
  uint row = at - params.begin;
  const uint column = take(row, params.inner);
  return row % params.step != 0u ? kNone : (outer * params.extent + row / params.step) * params.inner + column;
}

void main() {
  if (item() >= params.items) return;
  uint q = item();
  if (PART == UPDATE_PART) {
    uint outer = q;
    const uint k = take(outer, params.part_vec4s);
    q = outer * (params.slab >> 2) + (params.begin >> 2) + k;
  }
  uvec4 v = LOAD4(BITS, self_, q);
  bool touched = PART == UPDATE_ALL;
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
    const uint from = source(4u * q + k);
    touched = touched || from != kNone;
    if (from != kNone) v[k] = LOAD1(BITS, source_, from);
  }
  if (touched) STORE4(BITS, out_, q, v);
}
