// SPDX-License-Identifier: Apache-2.0
// out = F(x), element by element; a specialization constant selects F. One invocation computes a vec4 group; out may be x. f16 is
// widened to fp32 and rounded once; integers wrap; boolean has logical_not only. ops/unary.cpp lists which F takes which dtype.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16 i32 u8 i8 boolean
#pragma variant STORAGE buffer texture3d
#pragma choice FUNCTION gelu gelu_tanh tanh sigmoid silu exp expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos erf floor ceil round trunc hardswish hardsigmoid relu neg abs sign square bitwise_not logical_not
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/texture.glslh"

layout(constant_id = 1) const uint FUNCTION = 0;
#include "core/unary.glslh"

#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define ELEMENT vec4
#include "math/function_of_one.glslh"
vec4 apply(vec4 x) {
  switch (FUNCTION) {
    case FUNCTION_log2: return safe_log(x) * 1.44269504;
    case FUNCTION_log10: return safe_log(x) * 0.434294482;
    case FUNCTION_sin: return sine(x);
    case FUNCTION_cos: return cosine(x);
    case FUNCTION_floor: return floor(x);
    case FUNCTION_ceil: return ceil(x);
    case FUNCTION_round: return roundEven(x);
    case FUNCTION_trunc: return trunc(x);
    case FUNCTION_sign: return vec4(greaterThan(x, vec4(0.0))) - vec4(lessThan(x, vec4(0.0)));
  }
  return function_of_one(FUNCTION, x);
}
#else
ivec4 apply(ivec4 x) {
  switch (FUNCTION) {
    case FUNCTION_relu: return max(x, ivec4(0));
    case FUNCTION_neg: return -x;
    case FUNCTION_abs: return abs(x);
    case FUNCTION_sign: return sign(x);
    case FUNCTION_square: return x * x;
    case FUNCTION_bitwise_not: return ~x;
    case FUNCTION_logical_not: return ivec4(equal(x, ivec4(0)));
  }
  return ivec4(0);
}
#endif

void main() { UNARY_MAIN(apply) }
