// SPDX-License-Identifier: Apache-2.0
// scatter_add and index_add of f32 in any order: out = self, then atomics of memory add src to it. Two dispatches: COPY makes vec4
// groups of the output; then an invocation adds an element of src, which is walked over `walk`, the sizes of the index. With ALONG
// the index has the dimension `dim` alone, and negative ones count from the end. An index out of range is reported and adds
// nothing.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_atomic_float : require
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const bool COPY = false;
layout(constant_id = 2) const bool ALONG = false;

layout(set = 0, binding = 0) buffer Out { float out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { uvec4 self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { uvec4 index_[]; };
layout(set = 0, binding = 4) readonly buffer Src { uvec4 src_[]; };
layout(push_constant) uniform Params {
  uint count;  // of the output, or of the walk
  uint rank;
  uint dim;
  uint call;
  uint size[8];  // of the output
  uint walk[8];
  uint stride[8];  // of src
} params;

void copy(uint q) {
  const vec4 v = LOAD4(f32, self_, q);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) out_[4u * q + k] = v[k];
}

void add(uint i) {
  uint rest = i, step = 1u, to = 0u, from = 0u, of_dim = 0u, place = 0u;
  for (uint d = params.rank; d-- > 0u;) {
    const uint c = take(rest, params.walk[d]);
    from += c * params.stride[d];
    if (d == params.dim) {
      of_dim = step;
      place = c;
    } else {
      to += c * step;
    }
    step *= params.size[d];
  }
  const uint position = ALONG ? place : i;
  const int rows = int(params.size[params.dim]), given = LOAD1(i32, index_, position);
  const int row = ALONG && given < 0 ? given + rows : given;
  if (row < 0 || row >= rows) {
    report_index(params.call, position, given, rows);
    return;
  }
  atomicAdd(out_[to + uint(row) * of_dim], LOAD1(f32, src_, from));
}

void main() {
  const uint i = item();
  if (COPY) {
    if (4u * i < params.count) copy(i);
  } else if (i < params.count) {
    add(i);
  }
}
