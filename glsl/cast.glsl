// SPDX-License-Identifier: Apache-2.0
// out = x in another dtype, element by element, one invocation a quad. To boolean: x != 0 (NaN is true). Float to
// integer drops the fraction; what does not fit in 32 bits saturates, NaN is 0; to u8 and i8 the low eight bits of that
// are kept. Integer to integer keeps the low bits, integer to float rounds to nearest even.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant IN f32 f16 i32 u8 i8 boolean
#pragma variant OUT f32 f16 i32 u8 i8 boolean
#include "launch.glslh"
#include "math.glslh"
#include "types.glslh"

layout(binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
layout(binding = 1) readonly buffer X { WORD(IN) x_[]; };
layout(push_constant) uniform Params { uint quads; } params;

const float kTwo31 = 2147483648.0;

ivec4 to_integer(ivec4 x) { return x; }
ivec4 to_integer(vec4 x) {
#ifdef OUT_boolean
  return ivec4(notEqual(x, vec4(0.0))) | ivec4(is_nan(x));
#else
  // int() is defined inside the range only.
  const vec4 inside = mix(x, vec4(0.0), is_nan(x));
  const bvec4 above = greaterThanEqual(inside, vec4(kTwo31)), below = lessThan(inside, vec4(-kTwo31));
  const ivec4 value = ivec4(mix(mix(inside, vec4(0.0), above), vec4(0.0), below));
  return mix(mix(value, ivec4(0x7fffffff), above), ivec4(0x80000000), below);
#endif
}

#if defined(OUT_f32) || defined(OUT_f16)
#define CONVERT(v) vec4(v)
#else
#define CONVERT(v) to_integer(v)
#endif

void main() {
  const uint q = item();
  if (q < params.quads) STORE4(OUT, out_, q, CONVERT(LOAD4(IN, x_, q)));
}
