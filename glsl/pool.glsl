// SPDX-License-Identifier: Apache-2.0
// out[p, z, y, x] = the largest, or the mean, of the elements of plane p of the input in the window of (z, y, x); windows of
// fewer dimensions have ones in front. max_with_places also writes where in its plane the largest is: the first of equal ones,
// the last NaN. One invocation computes a vec4 group. Means of integers are exact sums, scaled and rounded once:
//   clamp(round(sum(x - x_zero) * x_scale / divisor / out_scale) + out_zero, low, high)
// Bindings: 0 out, 1 places, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16 i8 u8 i32 i64
#pragma choice POOL max mean adaptive_mean max_with_places
#include "core/index.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint POOL = 0;
layout(constant_id = 2) const bool COUNT_PADDING = false;  // of a mean: elements in the padding count as zeros

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) writeonly buffer Places { WORD(i32) places_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint in_size[3];
  uint out_size[3];
  uint kernel[3];
  uint stride[3];
  uint dilation[3];
  int pad[3];     // before the first element
  int end[3];     // where the padding after the last one ends
  float divisor;  // of a mean; 0: the number of elements
  CONV_INTEGER_PARAMS
} params;

#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define LOWEST (-infinity())
#define FROM_ZERO(v) (v)
#define CARRY(sum, high)
float mean(int high, float sum, float divisor) { return sum / divisor; }
#else
#define LOWEST int(0x80000000u)
#define FROM_ZERO(v) ((v) - params.x_zero)
int maximum(int a, int b) { return max(a, b); }
bool is_nan(int x) { return false; }
#define CARRY(sum, high) high += sum >> 16, sum &= 0xffff
int mean(int high, int sum, float divisor) {
  precise const float real = (float(high) * 65536.0 + float(sum)) * params.x_scale;
  return quantize(vec4(divide(real, divisor)), params.out_inverse, params.out_zero, params.low, params.high, STEPS_F32).x;
}
#endif

// The first coordinate of the window of output element o along an axis, and one past the last.
ivec2 span(uint axis, uint o) {
  if (POOL == POOL_adaptive_mean) {
    const uint size = params.in_size[axis], count = params.out_size[axis];
    return ivec2(o * size / count, ((o + 1u) * size + count - 1u) / count);
  }
  const int first = int(o * params.stride[axis]) - params.pad[axis];
  return ivec2(first, first + int((params.kernel[axis] - 1u) * params.dilation[axis] + 1u));
}

// The part of the window inside the image: a window may be much larger.
ivec2 inside(uint axis, ivec2 window) {
  const int step = int(params.dilation[axis]);
  const int first = window.x < 0 ? window.x + (step - 1 - window.x) / step * step : window.x;
  return ivec2(first, min(window.y, int(params.in_size[axis])));
}

float with_padding(uint axis, ivec2 window) { return float(min(window.y, params.end[axis]) - window.x); }

struct Pooled {
  ONE(DTYPE) value;
  uint place;
};

Pooled pool(uint i) {
  uint plane = i;
  const uint ox = take(plane, params.out_size[2]), oy = take(plane, params.out_size[1]), oz = take(plane, params.out_size[0]);
  const ivec2 zs = span(0u, oz), ys = span(1u, oy), xs = span(2u, ox);
  const ivec2 slabs = inside(0u, zs), rows = inside(1u, ys), columns = inside(2u, xs);
  const uint first = plane * params.in_size[0] * params.in_size[1] * params.in_size[2];
  Pooled best = Pooled(ONE(DTYPE)(LOWEST),
                       (uint(slabs.x) * params.in_size[1] + uint(rows.x)) * params.in_size[2] + uint(columns.x));
  ONE(DTYPE) sum = ONE(DTYPE)(0);
  int high = 0;  // of a sum of integers: the part above 16 bits, as 32 bits hold no more than 8.4 million differences
  int live = 0;
  for (int z = slabs.x; z < slabs.y; z += int(params.dilation[0])) {
    for (int y = rows.x; y < rows.y; y += int(params.dilation[1])) {
      const uint row = (uint(z) * params.in_size[1] + uint(y)) * params.in_size[2];
      for (int x = columns.x; x < columns.y; x += int(params.dilation[2])) {
        const ONE(DTYPE) v = LOAD1(DTYPE, x_, first + row + uint(x));
        if (POOL == POOL_max) {
          best.value = maximum(best.value, v);
        } else if (POOL == POOL_max_with_places) {
          if (v > best.value || is_nan(v)) best = Pooled(v, row + uint(x));
        } else {
          sum += FROM_ZERO(v);
          ++live;
        }
      }
      CARRY(sum, high);
    }
  }
  if (POOL == POOL_max || POOL == POOL_max_with_places) return best;
  const float all = with_padding(0u, zs) * with_padding(1u, ys) * with_padding(2u, xs);
  return Pooled(mean(high, sum, params.divisor != 0.0 ? params.divisor : COUNT_PADDING ? all : float(live)), 0u);
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  VEC(DTYPE) v;
  ivec4 places;
  for (uint i = 0u; i < 4u; ++i) {
    const Pooled pooled = pool(min(4u * q + i, params.count - 1u));
    v[i] = pooled.value;
    places[i] = int(pooled.place);
  }
  STORE4(DTYPE, out_, q, v);
  if (POOL == POOL_max_with_places) STORE4(i32, places_, q, places);
}
