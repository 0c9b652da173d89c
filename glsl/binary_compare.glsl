// SPDX-License-Identifier: Apache-2.0
// out = a OP b as bool, elementwise, both broadcast; b may be a number. One invocation computes a vec4 group of the output.
// Bindings: 0 out, 1 a, 2 b.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 u8 i8 boolean
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint OP = 0;  // COMPARE_* and LOGICAL_*
layout(constant_id = 2) const uint A_MODE = 0;
layout(constant_id = 3) const uint B_MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(boolean) out_[]; };
layout(set = 0, binding = 1) readonly buffer A { WORD(DTYPE) a_[]; };
layout(set = 0, binding = 2) readonly buffer B { WORD(DTYPE) b_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat_a;
  uint repeat_b;
  uint number;  // bits of the operand that is a number
} params;

BROADCAST_INDEX

#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define FROM_BITS uintBitsToFloat
#else
#define FROM_BITS int
#endif

OPERAND(load_a, DTYPE, a_, A_MODE, params.repeat_a, FROM_BITS(params.number))
OPERAND(load_b, DTYPE, b_, B_MODE, params.repeat_b, FROM_BITS(params.number))

// A NaN is unequal to everything, and counts as true.
bool compare(ONE(DTYPE) a, ONE(DTYPE) b) {
  const ONE(DTYPE) zero = ONE(DTYPE)(0);
  switch (OP) {
    case COMPARE_EQ: return a == b;
    case COMPARE_NE: return a != b;
    case COMPARE_LT: return a < b;
    case COMPARE_LE: return a <= b;
    case COMPARE_GT: return a > b;
    case COMPARE_GE: return a >= b;
    case LOGICAL_AND: return a != zero && b != zero;
    case LOGICAL_OR: return a != zero || b != zero;
    default: return (a != zero) != (b != zero);
  }
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const VEC(DTYPE) a = load_a(q);
  const VEC(DTYPE) b = load_b(q);
  const ivec4 result = ivec4(compare(a.x, b.x), compare(a.y, b.y), compare(a.z, b.z), compare(a.w, b.w));
  STORE4(boolean, out_, q, result);
}
