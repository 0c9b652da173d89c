// SPDX-License-Identifier: Apache-2.0
// out = several elementwise operators one after another, in one pass. One invocation computes a vec4 group.
// What each of the STEPS computes is a specialization constant: code | a << 8 | b << 16 | c << 24, so that a driver
// makes straight code of them. Operands are steps before, tensors that broadcast, and numbers. Every result is rounded to
// DTYPE as if it were stored, and no product is contracted with a sum: results are those of single operators. Functions
// with long code, such as sin, have no place here: a driver inlines all of them in every step before it drops most.
// Bindings: 0 out, 1 to 4 x, 5 condition; what a chain lacks is bound to anything and not read.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
// A file holds these numbers: new functions come last. Those before `add` have one operand.
#pragma choice FUNCTION gelu gelu_tanh tanh sigmoid silu exp expm1 log log1p sqrt rsqrt reciprocal erf hardswish hardsigmoid relu neg abs square add sub mul div maximum minimum pow prelu elu add_relu clamp where eq ne lt le gt ge
#include "math/arithmetic.glslh"
#define ELEMENT float
#include "math/function_of_one.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint STEPS = 1;
layout(constant_id = 2) const uint MODE_0 = 0;
layout(constant_id = 3) const uint MODE_1 = 0;
layout(constant_id = 4) const uint MODE_2 = 0;
layout(constant_id = 5) const uint MODE_3 = 0;
layout(constant_id = 6) const uint MODE_CONDITION = 0;
layout(constant_id = 7) const uint STEP_0 = 0;
layout(constant_id = 8) const uint STEP_1 = 0;
layout(constant_id = 9) const uint STEP_2 = 0;
layout(constant_id = 10) const uint STEP_3 = 0;
layout(constant_id = 11) const uint STEP_4 = 0;
layout(constant_id = 12) const uint STEP_5 = 0;
layout(constant_id = 13) const uint STEP_6 = 0;
layout(constant_id = 14) const uint STEP_7 = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X0 { WORD(DTYPE) x0_[]; };
layout(set = 0, binding = 2) readonly buffer X1 { WORD(DTYPE) x1_[]; };
layout(set = 0, binding = 3) readonly buffer X2 { WORD(DTYPE) x2_[]; };
layout(set = 0, binding = 4) readonly buffer X3 { WORD(DTYPE) x3_[]; };
layout(set = 0, binding = 5) readonly buffer Condition { WORD(boolean) condition_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat[5];
  float number[8];
  uint zero;  // always; no driver knows that
} params;

BROADCAST_INDEX
OPERAND(load_0, DTYPE, x0_, MODE_0, params.repeat[0], 0)
OPERAND(load_1, DTYPE, x1_, MODE_1, params.repeat[1], 0)
OPERAND(load_2, DTYPE, x2_, MODE_2, params.repeat[2], 0)
OPERAND(load_3, DTYPE, x3_, MODE_3, params.repeat[3], 0)
OPERAND(load_condition, boolean, condition_, MODE_CONDITION, params.repeat[4], 0)

float values[CHAIN_CONDITION + 1u];  // of steps, of x, and the condition: 1 where it holds

float value(uint at) {
  if (at >= CHAIN_NUMBER) return params.number[at - CHAIN_NUMBER];
  return values[at];
}

float function_of_more(uint function, float a, float b, float c) {
  precise float y = nan();
  switch (function) {
    case FUNCTION_add: y = a + b; break;
    case FUNCTION_sub: y = a - b; break;
    case FUNCTION_mul: y = a * b; break;
    case FUNCTION_div: y = a / b; break;
    case FUNCTION_maximum: y = maximum(a, b); break;
    case FUNCTION_minimum: y = minimum(a, b); break;
    case FUNCTION_pow: y = power(a, b); break;
    case FUNCTION_prelu: y = prelu(a, b); break;
    case FUNCTION_elu: y = elu(a, b); break;
    case FUNCTION_add_relu: y = maximum(a + b, 0.0); break;
    case FUNCTION_clamp: y = minimum(maximum(a, b), c); break;
    case FUNCTION_where: y = a != 0.0 ? b : c; break;
    case FUNCTION_eq: y = float(a == b); break;
    case FUNCTION_ne: y = float(a != b); break;
    case FUNCTION_lt: y = float(a < b); break;
    case FUNCTION_le: y = float(a <= b); break;
    case FUNCTION_gt: y = float(a > b); break;
    case FUNCTION_ge: y = float(a >= b); break;
  }
  return y;
}

float result_of(uint code) {
  const uint function = code & 255u;
  const float a = value(code >> 8 & 255u);
  if (function < FUNCTION_add) return function_of_one(function, a);
  return function_of_more(function, a, value(code >> 16 & 255u), value(code >> 24));
}

#ifdef DTYPE_f16
float rounded(float x) { return rounded_to_f16(vec2(x, 0.0), params.zero).x; }
#else
float rounded(float x) { return x; }
#endif
#define STEP(k, code) if (STEPS > k) values[k] = rounded(result_of(code));

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const vec4 x0 = load_0(q), x1 = load_1(q), x2 = load_2(q), x3 = load_3(q);
  const ivec4 condition = load_condition(q);
  vec4 y = vec4(0.0);
  // One element after another: what drivers inline, before they drop most of it, is then a quarter.
  for (uint k = 0u; k < 4u; ++k) {
    values[CHAIN_X] = x0[k];
    values[CHAIN_X + 1u] = x1[k];
    values[CHAIN_X + 2u] = x2[k];
    values[CHAIN_X + 3u] = x3[k];
    values[CHAIN_CONDITION] = float(condition[k] != 0);
    STEP(0u, STEP_0)
    STEP(1u, STEP_1)
    STEP(2u, STEP_2)
    STEP(3u, STEP_3)
    STEP(4u, STEP_4)
    STEP(5u, STEP_5)
    STEP(6u, STEP_6)
    STEP(7u, STEP_7)
    y[k] = values[STEPS - 1u];
  }
  STORE4(DTYPE, out_, q, y);
}
