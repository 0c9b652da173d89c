// SPDX-License-Identifier: Apache-2.0
// out[i] = table[x[i]] for bytes, signed or not: the table is indexed by the bits. One invocation moves a vec4 group.
// Bindings: 0 out, 1 x, 2 table.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };
layout(set = 0, binding = 1) readonly buffer X { uint x_[]; };
layout(set = 0, binding = 2) readonly buffer Table { uint table_[]; };  // 256 bytes
layout(push_constant) uniform Params { uint count; } params;

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  uint word = 0u;
  for (uint shift = 0u; shift < 32u; shift += 8u) {
    const uint from = (x_[q] >> shift) & 0xffu;
    word |= ((table_[from >> 2] >> ((from & 3u) * 8u)) & 0xffu) << shift;
  }
  out_[q] = word;
}
