// SPDX-License-Identifier: Apache-2.0
// out[i] = in[base + sum(coordinate[d] * stride[d])], where the coordinates are those of i in the shape `size`: permute, expand,
// slice, select, flip, repeat and patches. ZEROS: i counts from element params.zeros of the output on, which begins with as many
// zeros, whole vec4 groups. One invocation moves a vec4 group.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"

layout(constant_id = 1) const uint PATH = 0;  // COPY_*
layout(constant_id = 2) const bool ZEROS = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(BITS) in_[]; };
layout(push_constant) uniform Params {
  uint count;  // of the output
  uint zeros;
  uint rank;
  uint base;
  uint step;  // stride of the innermost dimension
  uint size[8];
  uint stride[8];
} params;

uint input_index(uint i) {
  uint index = params.base;
  for (uint d = params.rank; d-- > 1u;) index += take(i, params.size[d]) * params.stride[d];
  return params.rank == 0u ? index : index + i * params.stride[0];
}

// Whether the elements i .. i+3 are in one row of the innermost dimension.
bool in_a_row(uint i) {
  if (params.rank == 0u) return false;
  const uint size = params.size[params.rank - 1u];
  return i % size + 3u < size;
}

uvec4 load(uint i, uint count) {
  const uint first = input_index(i);
  if (PATH == COPY_VEC4) return LOAD4(BITS, in_, first >> 2);
  uvec4 v;
  if (PATH == COPY_ROW || in_a_row(i)) {
    for (uint k = 0u; k < 4u; ++k) v[k] = LOAD1(BITS, in_, first + k * params.step);
  } else {
    for (uint k = 0u; k < 4u; ++k) v[k] = LOAD1(BITS, in_, input_index(min(i + k, count - 1u)));
  }
  return v;
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const uint zeros = ZEROS ? params.zeros : 0u;
  uvec4 v = uvec4(0u);
  if (4u * q >= zeros) v = load(4u * q - zeros, params.count - zeros);
  STORE4(BITS, out_, q, v);
}
