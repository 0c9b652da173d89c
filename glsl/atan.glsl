// SPDX-License-Identifier: Apache-2.0
// out = atan(x). Vulkan allows its own atan an error of 4096 ulp, so it is computed here: with a = |x|,
//   atan(a) = turn + t + t^3 p(t^2), |t| <= tan(pi/8):  t = a,  (a - 1) / (a + 1) with turn pi/4,  -1 / a with turn pi/2.
// The error of t + t^3 p(t^2) is at most 2.1e-8 relative to atan(t). A division is 2.5 ulp and the sums in it 1 ulp
// more: 3.5 ulp of a |t| that is at most 1.06 times the result; with the roundings of the polynomial and of the last
// sum that is less than 6 ulp of the result. Odd, exactly pi/2 rounded at infinity, -0 stays, NaN stays.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16
#pragma variant STORAGE buffer texture3d
#include "core/unary.glslh"

float arctangent(float x) {
  if (is_nan(x)) return x;
  const float a = abs(x);
  const bool large = a > 2.41421356, middle = a > 0.414213562;
  const float t = large ? -1.0 / a : middle ? (a - 1.0) / (a + 1.0) : a;
  const float s = t * t;
  const float p = -0.333329491539 + s * (0.199777106478 + s * (-0.138776856032 + s * 0.0805374449538));
  return with_sign((large ? 1.57079633 : middle ? 0.785398163 : 0.0) + (t + t * s * p), x);
}

vec4 arctangent(vec4 x) { return vec4(arctangent(x.x), arctangent(x.y), arctangent(x.z), arctangent(x.w)); }

void main() { UNARY_MAIN(arctangent) }
