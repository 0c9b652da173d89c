// SPDX-License-Identifier: Apache-2.0
// tokens and positions of a step: ops/step_state.cpp.
// Bindings: 0 out, 1 position, 2 tokens, 3 first, 4 token, 5 step.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(i32) out_[]; };
layout(set = 0, binding = 1) writeonly buffer Position { WORD(i32) position_[]; };
layout(set = 0, binding = 2) readonly buffer Tokens { WORD(i32) tokens_[]; };
layout(set = 0, binding = 3) readonly buffer First { WORD(i32) first_[]; };
layout(set = 0, binding = 4) readonly buffer Token { WORD(i32) token_[]; };
layout(set = 0, binding = 5) readonly buffer Step { WORD(i32) step_[]; };
layout(push_constant) uniform Params {
  uint count;  // vec4 groups of tokens
} params;

void main() {
  const uint q = item();
  if (q >= params.count) return;
  const int step = LOAD1(i32, step_, 0);
  out_[q] = step == 0 ? tokens_[q] : token_[q];
  position_[q] = first_[q] + uint(step);
}
