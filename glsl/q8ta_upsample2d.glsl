// SPDX-License-Identifier: Apache-2.0
// out[p, y, x] = clamp(round(between(y, x) / out_scale) + out_zero, low, high). between() interpolates the four elements of x[p]
// around the place of (y, x) in the input, real(q) = (q - x_zero) * x_scale, with every rounding of PyTorch's upsample_bilinear2d, which
// computes places and sums by fused multiply-adds. One invocation computes a vec4 group.
//
// ORDER  rows      wy0 * (wx0 * a + wx1 * b) + wy1 * (wx0 * c + wx1 * d)
//        corners   the four products of weights first; those of the last channels modulo 8 added in another order
// All of that is loops of one exact_fma(), of which a dozen side by side took drivers half a second to compile.
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

vec2 places(uvec2 o, vec2 scale) {
  precise vec2 at = vec2(o) * scale;
  if (ALIGNED) return at;
  [[dont_unroll]] for (uint i = 0u; i < 2u; ++i) {
    at = vec2(at.y, max(exact_fma(scale.x, float(o.x) + 0.5, -0.5), 0.0));
    o = o.yx;
    scale = scale.yx;
  }
  return at;
}

Pair around(float at, uint size) {
  const uint first = min(uint(min(at, float(size))), size - 1u);  // float(size - 1) may be `size` beyond 2^24
  precise const float w1 = clamp(at - float(first), 0.0, 1.0), w0 = 1.0 - w1;
  return Pair(first, min(first + 1u, size - 1u), w0, w1);
}

// a.x * b.x, then a.y * b.y added by exact_fma(), and so on.
float chain(vec4 a, vec4 b, uint count) {
  float sum = 0.0;
  [[dont_unroll]] for (uint i = 0u; i < count; ++i) {
    sum = exact_fma(a.x, b.x, sum);
    a = a.yzwx;
    b = b.yzwx;
  }
  return sum;
}

// With PyTorch's roundings; v: the two elements at y.first, then those at y.second.
float exactly(vec4 v, Pair y, Pair x, uint channel) {
  if (ORDER == ORDER_rows) {
    // The pairs of a row, then what they make.
    vec4 a = v.yxwz;
    vec2 w = vec2(x.w1, x.w0), made = vec2(0.0);
    [[dont_unroll]] for (uint i = 0u; i < 3u; ++i) {
      if (i == 2u) {
        a.xy = made;
        w = vec2(y.w1, y.w0);
      }
      made = vec2(chain(vec4(a.xy, 0.0, 0.0), vec4(w, 0.0, 0.0), 2u), made.x);
      a = a.zwxy;
    }
    return made.x;
  }
  const vec4 wy = vec4(y.w0, y.w0, y.w1, y.w1), wx = vec4(x.w0, x.w1, x.w0, x.w1);
  const bool whole = channel < (params.channels & ~7u);
  vec4 a = wy, b = wx;
  vec4 w = vec4(0.0);
  float sum = 0.0;
  [[dont_unroll]] for (uint i = 0u; i < 5u; ++i) {
    if (i == 4u) {
      a = whole ? w.zwyx : w.yxzw;
      b = whole ? v.zwyx : v.yxzw;
    }
    sum = chain(a, b, i == 4u ? 4u : 1u);
    w = i == 4u ? w : vec4(w.yzw, sum);
    a = a.yzwx;
    b = b.yzwx;
  }
  return sum;
}

float sample_at(uint i) {
  uint plane = i;
  const uint ox = take(plane, params.out_w), oy = take(plane, params.out_h);
  const uint begin = plane * params.in_h * params.in_w;
  const vec2 at = places(uvec2(ox, oy), vec2(params.scale_w, params.scale_h));
  const Pair y = around(at.y, params.in_h), x = around(at.x, params.in_w);
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
  [[dont_unroll]] for (uint i = 0u; i < 4u; ++i) v = vec4(v.yzw, sample_at(min(4u * q + i, params.count - 1u)));
  STORE4(DTYPE, out_, q, requantize(v, params.out_inverse, params.out_zero, params.low, params.high));
}
