// SPDX-License-Identifier: Apache-2.0
// out = x in another dtype, element by element; one invocation converts a vec4 group. To boolean: x != 0 (NaN is true). Float to
// integer drops the fraction; what does not fit in 32 bits saturates. To i64 that is also reported if x is finite (PyTorch does
// not define the result for an infinity: models compute it and then drop it with `where`). NaN becomes 0. To u8 and i8 the low
// eight bits are kept. Integer to integer keeps the low bits, integer to float rounds to nearest even.
// Bindings: 0 out, then status for OUT i64, then x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant IN f32 f16 i32 u8 i8 boolean
#pragma variant OUT f32 f16 i32 i64 u8 i8 boolean
// A cast to what the device keeps already is a view (ops/cast.cpp).
#pragma without IN=f32 OUT=f32
#pragma without IN=f16 OUT=f16
#pragma without IN=i32 OUT=i32
#pragma without IN=i32 OUT=i64
#pragma without IN=u8 OUT=u8
#pragma without IN=i8 OUT=i8
#pragma without IN=boolean OUT=boolean
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/types.glslh"

layout(binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
#ifdef OUT_i64
#define REPORTS
#endif
#include "core/reports.glslh"
layout(binding = READS) readonly buffer X { WORD(IN) x_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint call;
} params;

const float kTwo31 = 2147483648.0;

bool leaves_32_bits(int x) { return false; }
bool leaves_32_bits(float x) { return abs(x) != infinity() && (x >= kTwo31 || x < -kTwo31); }

ivec4 to_integer(ivec4 x) { return x; }
ivec4 to_integer(vec4 x) {
#ifdef OUT_boolean
  return ivec4(notEqual(x, vec4(0.0))) | ivec4(is_nan(x));
#else
  // int() is defined only for values that fit.
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
  if (4u * q >= params.count) return;
  const VEC(IN) x = LOAD4(IN, x_, q);
#ifdef REPORTS
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
    if (leaves_32_bits(x[k])) report(params.call, 4u * q + k, STATUS_LEAVES_32_BITS);
  }
#endif
  STORE4(OUT, out_, q, CONVERT(x));
}
