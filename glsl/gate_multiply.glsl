// SPDX-License-Identifier: Apache-2.0
// out[m, 16 i + j] = act(in[m, 32 i + j]) * in[m, 32 i + 16 + j], j < 16: the end of a gated product (ops/fused_linear.cpp) whose
// kernel stores all of its columns. An invocation makes a vec4 group.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/activation.glslh"

layout(constant_id = 1) const uint ACT = 0u;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint count;  // vec4 groups of the output, whose rows are multiples of four of them
} params;

void main() {
  const uint i = item(), gate = (i >> 2) * 8u + (i & 3u);
  if (i < params.count) STORE4(DTYPE, out_, i, activate(LOAD4(DTYPE, in_, gate), ACT) * LOAD4(DTYPE, in_, gate + 4u));
}
