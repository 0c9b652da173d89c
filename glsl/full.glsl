// SPDX-License-Identifier: Apache-2.0
// Sets every 32-bit word of a tensor to the same value: full, zeros, ones. One invocation writes four words.
// Bindings: 0 out.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(push_constant) uniform Params {
  uint count;  // of 16-byte pieces
  uint word;
} params;

void main() {
  if (item() < params.count) out_[item()] = uvec4(params.word);
}
