// SPDX-License-Identifier: Apache-2.0
// out = in with `before[d]` elements of `value` before dimension d (negative: elements are cut off), and as many after it as make
// `size[d]`; or, with another MODE, elements of `in`: mirrored at its ends (which are not repeated), its first and last ones, or
// those of its other end. One invocation computes a vec4 group.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#pragma choice MODE constant reflect replicate circular
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(constant_id = 1) const uint MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(BITS) in_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint rank;
  uint value;       // bits of an element
  uint size[8];     // of the output
  uint in_size[8];
  int before[8];
} params;

// Where a coordinate outside of the input reads; ops/pad.cpp checks that once is enough.
uint inside(int at, int size) {
  switch (MODE) {
    case MODE_reflect: return uint(at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at);
    case MODE_replicate: return uint(clamp(at, 0, size - 1));
    case MODE_circular: return uint(at < 0 ? at + size : at >= size ? at - size : at);
  }
  return uint(at);  // before the input it wraps to a huge one: one comparison tests both ends
}

uint element(uint i) {
  uint index = 0u, stride = 1u;
  for (uint d = params.rank; d-- > 0u;) {
    const uint at = inside(int(take(i, params.size[d])) - params.before[d], int(params.in_size[d]));
    if (at >= params.in_size[d]) return params.value;
    index += at * stride;
    stride *= params.in_size[d];
  }
  return LOAD1(BITS, in_, index);
}

void main() {
  const uint q = item();
  const uint i = 4u * q;
  if (i >= params.count) return;
  uvec4 v;
  for (uint k = 0u; k < 4u; ++k) v[k] = element(min(i + k, params.count - 1u));
  STORE4(BITS, out_, q, v);
}
