// SPDX-License-Identifier: Apache-2.0
// scatter_add of f32 by rows, in any order: out[r, j] = self[r, j] + src[r, p] for every p with index[r, p] = j, by atomics of shared
// memory. A workgroup has COLUMNS neighbouring rows (where an element of a row is as far from the next as there are rows) and PART
// elements of each; it reads all indices of its rows. An index out of range is reported and adds nothing.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_atomic_float : require
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint COLUMNS = 1u;  // a power of two
layout(constant_id = 2) const uint PART = 1u;

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { uvec4 self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { uvec4 index_[]; };
layout(set = 0, binding = 4) readonly buffer Src { uvec4 src_[]; };
layout(push_constant) uniform Params {
  uint groups;
  uint parts;    // of a row
  uint tiles;    // of COLUMNS rows, in a slab
  uint extent;   // of a row of the output
  uint indices;  // of a row
  uint terms;    // of a row of src, of which the first `indices` count
  uint inner;    // distance between neighbouring elements of a row
  uint call;
} params;

const uint kEach = 4u;  // indices that are on their way at once
shared float sums_[PART * COLUMNS];

void main() {
  uint rest = group();
  if (rest >= params.groups) return;
  const uint first = take(rest, params.parts) * PART, tile = take(rest, params.tiles), slab = rest;
  const uint column = lane() % COLUMNS, from = tile * COLUMNS + column, begin = lane() / COLUMNS, step = LANES / COLUMNS;
  const uint size = from < params.inner ? min(PART, params.extent - first) : 0u;
  const uint indices = from < params.inner ? params.indices : 0u;
  const uint base = (slab * params.extent + first) * params.inner + from;
  const uint index = slab * params.indices * params.inner + from, src = slab * params.terms * params.inner + from;
  for (uint j = begin; j < size; j += step) sums_[j * COLUMNS + column] = LOAD1(f32, self_, base + j * params.inner);
  barrier();
  for (uint p = begin; p < indices; p += kEach * step) {
    uint key[kEach];
    float term[kEach];
    [[unroll]] for (uint k = 0u; k < kEach; ++k) {
      const uint at = p + k * step;
      key[k] = size;
      if (at >= indices) continue;
      const int given = LOAD1(i32, index_, index + at * params.inner);
      if (first == 0u && (given < 0 || given >= int(params.extent)))
        report_index(params.call, index + at * params.inner, given, int(params.extent));
      key[k] = uint(given) - first;
      if (key[k] < size) term[k] = LOAD1(f32, src_, src + at * params.inner);
    }
    [[unroll]] for (uint k = 0u; k < kEach; ++k)
      if (key[k] < size) atomicAdd(sums_[key[k] * COLUMNS + column], term[k]);
  }
  barrier();
  for (uint j = begin; j < size; j += step) STORE1(f32, out_, base + j * params.inner, sums_[j * COLUMNS + column]);
}
