// SPDX-License-Identifier: Apache-2.0
// out[i] = start + i * step. One invocation computes a vec4 group.
// Bindings: 0 out.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(i32) out_[]; };
layout(push_constant) uniform Params {
  uint count;
  int start;
  int step;
} params;

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  STORE4(i32, out_, q, params.start + (ivec4(4u * q) + ivec4(0, 1, 2, 3)) * params.step);
}
