// SPDX-License-Identifier: Apache-2.0
// Splits the rows of x[M, K] into two fp16 for each element, for kernels that multiply fp16 and sum in fp32. A workgroup has a row.
//
//   x[m, k] = (high[m, k] + low[m, k] * 2^-11) * scale[m]
//
// scale is the power of two that brings the row's largest finite element into [2^14, 2^15): exact, and undone exactly. high is
// x / scale rounded to fp16, low what is left, 2^11 times and rounded: each has 11 bits, so that |error| <= 2^-22 |x|, or 2^-50 of
// the row's largest element where low is subnormal (ops/linear/error_bound.h, math/split.glslh).
// out[m] is high, then low, each as whole tiles of 64 columns; those past K are 0. rows[m]: the bits of scale, and 0.
// Bindings: 0 out, 1 rows, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "core/reduce.glslh"
#include "core/types.glslh"
#include "math/split.glslh"

layout(constant_id = 1) const bool K_VEC4 = false;  // rows of x are whole vec4 groups
layout(constant_id = 2) const bool QUICK = false;    // by split_four
layout(constant_id = 3) const uint HELD = 0u;        // vec4 groups of the row that an invocation keeps: all of its own, or 0

layout(set = 0, binding = 0) writeonly buffer Out { uvec2 out_[]; };
layout(set = 0, binding = 1) writeonly buffer Rows { uvec2 rows_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(f32) x_[]; };
layout(push_constant) uniform Params {
  uint m;
  uint k;
  uint tiles;  // ceil(k / 64)
} params;

vec4 load(uint row, uint q) {
  vec4 v = vec4(0.0);
  if (K_VEC4) return 4u * q < params.k ? LOAD4(f32, x_, row * (params.k / 4u) + q) : v;
  for (uint i = 0u; i < 4u; ++i)
    if (4u * q + i < params.k) v[i] = LOAD1(f32, x_, row * params.k + 4u * q + i);
  return v;
}

vec4 held_[HELD == 0u ? 1u : HELD];  // groups lane() + i * LANES

void store(uint row, uint q, vec4 x, float up) {
  const uint groups = params.tiles * 16u;
  uvec2 high, low;
  if (QUICK) {
    split_four(x, up, largest_of(x) < int(kInfBits), high, low);
  } else {
    split_two(x, up, high, low);
  }
  out_[row * 2u * groups + q] = high;
  out_[(row * 2u + 1u) * groups + q] = low;
}

void main() {
  const uint row = group(), groups = params.tiles * 16u;
  if (row >= params.m) return;  // the whole workgroup
  int size = 0;
  [[unroll]] for (uint i = 0u; i < HELD; ++i) {
    held_[i] = load(row, lane() + i * LANES);
    size = max(size, largest_size(held_[i]));
  }
  for (uint q = lane(); HELD == 0u && q < groups; q += LANES) size = max(size, largest_size(load(row, q)));
  const int power = row_power(workgroup_max(size));
  const float up = power_of_2(power);
  [[unroll]] for (uint i = 0u; i < HELD; ++i) {
    const uint q = lane() + i * LANES;
    if (q < groups) store(row, q, held_[i], up);
  }
  for (uint q = lane(); HELD == 0u && q < groups; q += LANES) store(row, q, load(row, q), up);
  if (lane() == 0u) rows_[row] = uvec2(floatBitsToUint(power_of_2(-power)), 0u);
}
