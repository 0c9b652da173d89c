// SPDX-License-Identifier: Apache-2.0
// out = F(x), element by element, for the functions of math/functions.glslh; a specialization constant selects F. A function more
// is a line here, one in ops/unary_math.cpp and one in python/pumice/ops/unary_math.py.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant STORAGE buffer texture3d
#pragma choice FUNCTION asin acos sinh cosh tan asinh acosh atanh exp2 erfc lgamma digamma round_bfloat16
#include "core/launch.glslh"
#include "math/functions.glslh"
#include "core/texture.glslh"

layout(constant_id = 1) const uint FUNCTION = 0;
#include "core/unary.glslh"

// Of long functions code for one element, not for four. A driver would write out what it can count, but not up to params.vec4_count.
#define IN_TURN(f)                                                                                          \
  {                                                                                                         \
    const uint end = min(4u, params.vec4_count + 3u);                                                       \
    [[dont_unroll]] for (uint i = 0u; i < end; ++i) x = vec4(x.yzw, f(x.x));                                \
    return x;                                                                                               \
  }

vec4 apply(vec4 x) {
  switch (FUNCTION) {
    case FUNCTION_asin: return arc_sine(x);
    case FUNCTION_acos: return arc_cosine(x);
    case FUNCTION_sinh: return hyperbolic_sine(x);
    case FUNCTION_cosh: return hyperbolic_cosine(x);
    case FUNCTION_tan: return tangent(x);
    case FUNCTION_asinh: return inverse_sinh(x);
    case FUNCTION_acosh: return inverse_cosh(x);
    case FUNCTION_atanh: return inverse_tanh(x);
    case FUNCTION_exp2: return two_to(x);
    case FUNCTION_erfc: return erfc(x);
    case FUNCTION_lgamma: IN_TURN(log_gamma)
    case FUNCTION_digamma: return digamma(x);
    case FUNCTION_round_bfloat16: return to_bfloat16(x);
  }
  return vec4(nan());
}

void main() { UNARY_MAIN(apply) }
