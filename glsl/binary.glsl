// SPDX-License-Identifier: Apache-2.0
// out = a OP b, elementwise, both broadcast; either may be a number. One invocation computes a vec4 group of the output.
// Integers wrap; for i64 a result that does not fit in 32 bits is reported. So is a division of integers by zero.
// Bindings: 0 out, then status where integers are reported, then a, b.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 i64 u8 i8 boolean
#include "math/arithmetic.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint OP = 0;  // BINARY_*
layout(constant_id = 2) const uint A_MODE = 0;
layout(constant_id = 3) const uint B_MODE = 0;

#if !(defined(DTYPE_f32) || defined(DTYPE_f16) || defined(DTYPE_boolean))
#define REPORTS  // integers: some results have no right answer
#endif

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#include "core/reports.glslh"
layout(set = 0, binding = READS) readonly buffer A { WORD(DTYPE) a_[]; };
layout(set = 0, binding = READS + 1) readonly buffer B { WORD(DTYPE) b_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat_a;
  uint repeat_b;
  uint number;  // bits of the operand that is a number
  uint alpha;
  uint call;
} params;

BROADCAST_INDEX

#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define FROM_BITS uintBitsToFloat
#define EACH(F) vec4(F(a.x, b.x), F(a.y, b.y), F(a.z, b.z), F(a.w, b.w))
#else
#define FROM_BITS int
#define EACH(F) ivec4(F(a.x, b.x), F(a.y, b.y), F(a.z, b.z), F(a.w, b.w))
#endif

OPERAND(load_a, DTYPE, a_, A_MODE, params.repeat_a, FROM_BITS(params.number))
OPERAND(load_b, DTYPE, b_, B_MODE, params.repeat_b, FROM_BITS(params.number))

#if defined(DTYPE_f32) || defined(DTYPE_f16)
vec4 special(vec4 a, vec4 b) {
  if (OP == BINARY_PRELU) return prelu(a, b);
  if (OP == BINARY_ELU) return elu(a, b);
  if (OP == BINARY_ADD_RELU) return maximum(a + b, vec4(0.0));
  return OP == BINARY_DIV ? a / b : EACH(atan2);
}
#else
ivec4 special(ivec4 a, ivec4 b) { return OP == BINARY_AND ? a & b : OP == BINARY_OR ? a | b : a ^ b; }
#endif

VEC(DTYPE) compute(VEC(DTYPE) a, VEC(DTYPE) b) {
  switch (OP) {
    case BINARY_ADD: return a + b * FROM_BITS(params.alpha);
    case BINARY_SUB: return a - b * FROM_BITS(params.alpha);
    case BINARY_MUL: return a * b;
    case BINARY_DIV_FLOOR: return EACH(floor_divide);
    case BINARY_DIV_TRUNC: return EACH(trunc_divide);
    case BINARY_REMAINDER: return EACH(remainder);
    case BINARY_FMOD: return EACH(fmod);
    case BINARY_MAXIMUM: return EACH(maximum);
    case BINARY_MINIMUM: return EACH(minimum);
    case BINARY_POW: return EACH(power);
    default: return special(a, b);
  }
}

#ifdef REPORTS
const bool kDivides = OP >= BINARY_DIV_FLOOR && OP <= BINARY_FMOD;

#ifdef DTYPE_i64
bool exact_leaves_32_bits(int a, int b) {
  switch (OP) {
    case BINARY_ADD: return leaves_32_bits(plus(widen(a), product(b, int(params.alpha))));
    case BINARY_SUB: return leaves_32_bits(minus(widen(a), product(b, int(params.alpha))));
    case BINARY_MUL: return leaves_32_bits(product(a, b));
    case BINARY_POW: return power_leaves_32_bits(a, b);
    case BINARY_DIV_FLOOR: case BINARY_DIV_TRUNC: return a == int(0x80000000) && b == -1;
    default: return false;
  }
}
#else
bool exact_leaves_32_bits(int a, int b) { return false; }  // these wrap, as in PyTorch
#endif

void look(uint i, int a, int b) {
  if (i >= params.count) return;
  if (kDivides && b == 0) report(params.call, i, STATUS_DIVIDES_BY_ZERO);
  if (exact_leaves_32_bits(a, b)) report(params.call, i, STATUS_LEAVES_32_BITS);
}
#endif

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const VEC(DTYPE) a = load_a(q), b = load_b(q);
#ifdef REPORTS
  for (uint k = 0u; k < 4u; ++k) look(4u * q + k, a[k], b[k]);
#endif
  STORE4(DTYPE, out_, q, compute(a, b));
}
