// SPDX-License-Identifier: Apache-2.0
// out = condition ? a : b, elementwise, all broadcast; a and b may be numbers. One invocation moves a vec4 group.
// Bindings: 0 out, 1 condition, 2 a, 3 b.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"

layout(constant_id = 1) const uint CONDITION_MODE = 0;
layout(constant_id = 2) const uint A_MODE = 0;
layout(constant_id = 3) const uint B_MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer Condition { WORD(boolean) condition_[]; };
layout(set = 0, binding = 2) readonly buffer A { WORD(BITS) a_[]; };
layout(set = 0, binding = 3) readonly buffer B { WORD(BITS) b_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat_condition;
  uint repeat_a;
  uint repeat_b;
  uint number_a;
  uint number_b;
} params;

BROADCAST_INDEX
OPERAND(load_condition, boolean, condition_, CONDITION_MODE, params.repeat_condition, 0)
OPERAND(load_a, BITS, a_, A_MODE, params.repeat_a, params.number_a)
OPERAND(load_b, BITS, b_, B_MODE, params.repeat_b, params.number_b)

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const bvec4 condition = notEqual(load_condition(q), ivec4(0));
  STORE4(BITS, out_, q, mix(load_b(q), load_a(q), condition));
}
