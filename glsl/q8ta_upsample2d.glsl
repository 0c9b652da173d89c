// SPDX-License-Identifier: Apache-2.0
// out[p, y, x] = clamp(round(between(y, x) / out_scale) + out_zero, low, high). between() interpolates the four elements of x[p]
// around the place of (y, x) in the input, real(q) = (q - x_zero) * x_scale, with every rounding of PyTorch's upsample_bilinear2d, which
// computes places and sums by fused multiply-adds. One invocation computes a vec4 group.
//
// ORDER  rows      wy0 * (wx0 * a + wx1 * b) + wy1 * (wx0 * c + wx1 * d)
//        corners   the four products of weights first; those of the last channels modulo 8 added in another order
//
// The order matters only where the quotient is next to a tie; elsewhere a plain expression is used.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE i8 u8
#pragma choice ORDER rows corners
#include "math/exact_fma.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint ORDER = 0;
layout(constant_id = 2) const bool ALIGNED = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint in_h;
  uint in_w;
  uint out_h;
  uint out_w;
  float scale_h;  // input elements for each of the output
  float scale_w;
  uint channels;
  CONV_INTEGER_PARAMS
} params;

// The elements before and after a place, and their weights.
struct Pair {
  uint first;
  uint second;
  float w0;
  float w1;
};

Pair around(uint o, uint size, float scale) {
  precise float at = ALIGNED ? float(o) * scale : max(exact_fma(scale, float(o) + 0.5, -0.5), 0.0);
  const uint first = min(uint(min(at, float(size))), size - 1u);  // float(size - 1) may be `size` beyond 2^24
  precise const float w1 = clamp(at - float(first), 0.0, 1.0), w0 = 1.0 - w1;
  return Pair(first, min(first + 1u, size - 1u), w0, w1);
}

// With PyTorch's roundings; v: the two elements at y.first, then those at y.second.
float exactly(vec4 v, Pair y, Pair x, uint channel) {
  if (ORDER == ORDER_rows) {
    const float a = exact_fma(v.x, x.w0, multiply(v.y, x.w1)), b = exact_fma(v.z, x.w0, multiply(v.w, x.w1));
    return exact_fma(a, y.w0, multiply(b, y.w1));
  }
  const vec4 w = vec4(multiply(y.w0, x.w0), multiply(y.w0, x.w1), multiply(y.w1, x.w0), multiply(y.w1, x.w1));
  if (channel < (params.channels & ~7u)) return exact_fma(w.x, v.x, exact_fma(w.y, v.y, exact_fma(w.w, v.w, multiply(w.z, v.z))));
  return exact_fma(w.w, v.w, exact_fma(w.z, v.z, exact_fma(w.x, v.x, multiply(w.y, v.y))));
}

float sample_at(uint i) {
  uint plane = i;
  const uint ox = take(plane, params.out_w), oy = take(plane, params.out_h);
  const uint begin = plane * params.in_h * params.in_w;
  const Pair y = around(oy, params.in_h, params.scale_h), x = around(ox, params.in_w, params.scale_w);
  const uint above = begin + y.first * params.in_w, below = begin + y.second * params.in_w;
  const ivec4 q = ivec4(LOAD1(DTYPE, x_, above + x.first), LOAD1(DTYPE, x_, above + x.second),
                        LOAD1(DTYPE, x_, below + x.first), LOAD1(DTYPE, x_, below + x.second));
  const vec4 v = dequantize(q, params.x_scale, params.x_zero, STEPS_F32);
  const float quick = y.w0 * (x.w0 * v.x + x.w1 * v.y) + y.w1 * (x.w0 * v.z + x.w1 * v.w);
  // Both results are within eight roundings of the largest of the four: at most 2^-20 of it apart, and twice that after the quotient.
  const vec4 size = abs(v);
  const float largest = max(max(size.x, size.y), max(size.z, size.w)) * params.out_inverse;
  const bool sure = abs(fract(quick * params.out_inverse) - 0.5) > largest * 1.9e-6;
  const bool ordinary = params.x_scale > 1e-30 && params.x_scale < 1e30;  // no intermediate is denormal or overflows
  return sure && ordinary ? quick : exactly(v, y, x, plane % params.channels);
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  vec4 v;
  for (uint i = 0u; i < 4u; ++i) v[i] = sample_at(min(4u * q + i, params.count - 1u));
  STORE4(DTYPE, out_, q, quantize(v, params.out_inverse, params.out_zero, params.low, params.high, STEPS_F32));
}
