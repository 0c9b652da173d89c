// SPDX-License-Identifier: Apache-2.0
// out = min(max(x, low), high); NaN stays NaN. low > high gives high, as in PyTorch. One invocation computes a vec4 group.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 u8 i8
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint low;   // bits of a float or an int
  uint high;
} params;

#if defined(DTYPE_f32) || defined(DTYPE_f16)
vec4 bound(vec4 x) {
  return minimum(maximum(x, vec4(uintBitsToFloat(params.low))), vec4(uintBitsToFloat(params.high)));
}
#else
ivec4 bound(ivec4 x) { return min(max(x, ivec4(params.low)), ivec4(params.high)); }
#endif

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  STORE4(DTYPE, out_, q, bound(LOAD4(DTYPE, x_, q)));
}
