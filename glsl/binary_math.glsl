// SPDX-License-Identifier: Apache-2.0
// out = F(a, b) of floats, elementwise, both broadcast; either may be a number. A specialization constant selects F: functions that
// few models need. One invocation computes a vec4 group of the output.
// Bindings: 0 out, 1 a, 2 b.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#pragma choice FUNCTION hypot copysign fmax fmin logaddexp logaddexp2 nextafter
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"
#include "math/functions.glslh"

layout(constant_id = 1) const uint FUNCTION = 0;
layout(constant_id = 2) const uint A_MODE = 0;
layout(constant_id = 3) const uint B_MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
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
OPERAND(load_a, DTYPE, a_, A_MODE, params.repeat_a, uintBitsToFloat(params.number))
OPERAND(load_b, DTYPE, b_, B_MODE, params.repeat_b, uintBitsToFloat(params.number))

// Of the larger, times sqrt(1 + ratio^2): squares do not overflow. Infinite where either is, NaN or not.
float hypot(float a, float b) {
  const float x = abs(a), y = abs(b);
  if (x == infinity() || y == infinity()) return infinity();
  if (is_nan(x) || is_nan(y)) return nan();
  const float most = max(x, y), ratio = most == 0.0 ? 0.0 : min(x, y) / most;
  return most * safe_sqrt(1.0 + ratio * ratio);
}

// The other where one is NaN.
float fmax(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : max(a, b); }
float fmin(float a, float b) { return is_nan(a) ? b : is_nan(b) ? a : min(a, b); }

// max(a, b) + log(1 + e^-|a - b|); equal infinities have no difference.
float logaddexp(float a, float b) {
  if (a == b && abs(a) == infinity()) return a;
  return maximum(a, b) + log_1_plus(safe_exp(-abs(a - b)));
}
float logaddexp2(float a, float b) {
  if (a == b && abs(a) == infinity()) return a;
  return maximum(a, b) + log_1_plus(two_to(-abs(a - b))) * 1.44269504;
}

// The next number of DTYPE from a towards b: numbers of a sign are in the order of their bits.
#ifdef DTYPE_f16
uint to_bits(float x) { return packHalf2x16(vec2(x, 0.0)); }
float from_bits(uint bits) { return unpackHalf2x16(bits).x; }
const uint kSign = 0x8000u;
#else
uint to_bits(float x) { return floatBitsToUint(x); }
float from_bits(uint bits) { return uintBitsToFloat(bits); }
const uint kSign = 0x80000000u;
#endif
// Decided by bits: a driver may take the smallest numbers for 0.
float nextafter(float a, float b) {
  if (is_nan(a) || is_nan(b)) return nan();
  const uint m = to_bits(a), n = to_bits(b);
  const uint x = m & (kSign - 1u), y = n & (kSign - 1u);
  if (m == n || (x | y) == 0u) return b;
  if (x == 0u) return from_bits((n & kSign) | 1u);
  const bool away = (m & kSign) == (n & kSign) && y > x;
  return from_bits(away ? m + 1u : m - 1u);
}

#define EACH(F) vec4(F(a.x, b.x), F(a.y, b.y), F(a.z, b.z), F(a.w, b.w))
vec4 compute(vec4 a, vec4 b) {
  switch (FUNCTION) {
    case FUNCTION_hypot: return EACH(hypot);
    case FUNCTION_copysign: return vec4(with_sign(abs(a.x), b.x), with_sign(abs(a.y), b.y), with_sign(abs(a.z), b.z),
                                        with_sign(abs(a.w), b.w));
    case FUNCTION_fmax: return EACH(fmax);
    case FUNCTION_fmin: return EACH(fmin);
    case FUNCTION_logaddexp: return EACH(logaddexp);
    case FUNCTION_logaddexp2: return EACH(logaddexp2);
    case FUNCTION_nextafter: return EACH(nextafter);
  }
  return vec4(nan());
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  STORE4(DTYPE, out_, q, compute(load_a(q), load_b(q)));
}
