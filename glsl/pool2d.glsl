// SPDX-License-Identifier: Apache-2.0
// out[p, y, x] = the largest, or the mean, of the elements of plane p of the input in the window of (y, x). One invocation
// computes a vec4 group. Means of integers are exact sums, scaled and rounded once:
//   clamp(round(sum(x - x_zero) * x_scale / divisor / out_scale) + out_zero, low, high)
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i8 u8
#pragma choice POOL max mean adaptive_mean
#include "core/index.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint POOL = 0;
layout(constant_id = 2) const bool COUNT_PADDING = false;  // of a mean: elements in the padding count as zeros

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint in_h;
  uint in_w;
  uint out_h;
  uint out_w;
  uint kernel_h;
  uint kernel_w;
  uint stride_h;
  uint stride_w;
  uint dilation_h;
  uint dilation_w;
  int pad_h;      // above
  int pad_w;      // to the left
  int end_h;      // where the padding below ends
  int end_w;
  float divisor;  // of a mean; 0: the number of elements
  CONV_INTEGER_PARAMS
} params;

#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define LOWEST (-infinity())
#define FROM_ZERO(v) (v)
#define CARRY(sum, high)
float mean(int high, float sum, float divisor) { return sum / divisor; }
#else
#define LOWEST -128
#define FROM_ZERO(v) ((v) - params.x_zero)
int maximum(int a, int b) { return max(a, b); }
#define CARRY(sum, high) high += sum >> 16, sum &= 0xffff
int mean(int high, int sum, float divisor) {
  const float real = (float(high) * 65536.0 + float(sum)) * params.x_scale / divisor;
  return quantize(vec4(real), params.out_inverse, params.out_zero, params.low, params.high, STEPS_F32).x;
}
#endif

// The first coordinate of a window along an axis, and one past the last.
ivec2 span(uint o, uint size, uint count, uint kernel, uint stride, uint dilation, int pad) {
  if (POOL == POOL_adaptive_mean) return ivec2(o * size / count, ((o + 1u) * size + count - 1u) / count);
  const int first = int(o * stride) - pad;
  return ivec2(first, first + int((kernel - 1u) * dilation + 1u));
}

// The part of the window inside the image: a window may be much larger.
ivec2 inside(ivec2 window, uint size, uint dilation) {
  const int step = int(dilation);
  const int first = window.x < 0 ? window.x + (step - 1 - window.x) / step * step : window.x;
  return ivec2(first, min(window.y, int(size)));
}

ONE(DTYPE) pool(uint i) {
  uint plane = i;
  const uint ox = take(plane, params.out_w), oy = take(plane, params.out_h);
  const ivec2 ys = span(oy, params.in_h, params.out_h, params.kernel_h, params.stride_h, params.dilation_h, params.pad_h);
  const ivec2 xs = span(ox, params.in_w, params.out_w, params.kernel_w, params.stride_w, params.dilation_w, params.pad_w);
  ONE(DTYPE) best = ONE(DTYPE)(LOWEST), sum = ONE(DTYPE)(0);
  int high = 0;  // of a sum of integers: the part above 16 bits, as 32 bits hold no more than 8.4 million differences
  int live = 0;
  const ivec2 rows = inside(ys, params.in_h, params.dilation_h), columns = inside(xs, params.in_w, params.dilation_w);
  for (int y = rows.x; y < rows.y; y += int(params.dilation_h)) {
    for (int x = columns.x; x < columns.y; x += int(params.dilation_w)) {
      const ONE(DTYPE) v = LOAD1(DTYPE, x_, (plane * params.in_h + uint(y)) * params.in_w + uint(x));
      if (POOL == POOL_max) {
        best = maximum(best, v);
      } else {
        sum += FROM_ZERO(v);
        ++live;
      }
    }
    CARRY(sum, high);
  }
  if (POOL == POOL_max) return best;
  const float all = float(min(ys.y, params.end_h) - ys.x) * float(min(xs.y, params.end_w) - xs.x);
  return mean(high, sum, params.divisor != 0.0 ? params.divisor : COUNT_PADDING ? all : float(live));
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  VEC(DTYPE) v;
  for (uint i = 0u; i < 4u; ++i) v[i] = pool(min(4u * q + i, params.count - 1u));
  STORE4(DTYPE, out_, q, v);
}
