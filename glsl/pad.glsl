// SPDX-License-Identifier: Apache-2.0
// out = in with `before[d]` elements of `value` before dimension d (negative: elements are cut off), and as many after it as make
// `size[d]`. One invocation computes a vec4 group.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

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

uint element(uint i) {
  uint index = 0u, stride = 1u;
  for (uint d = params.rank; d-- > 0u;) {
    // A coordinate before the input wraps to a huge one: one comparison tests both ends.
    const uint at = take(i, params.size[d]) - uint(params.before[d]);
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
