// SPDX-License-Identifier: Apache-2.0
// Of each row of x: the `chosen` largest numbers, largest first (of equal ones the earlier; NaN is larger than all), as their
// positions, and their shares: exp(x - max), divided by the sum of the row's, or (OF_CHOSEN) by the sum of those chosen. A workgroup
// has a row; an invocation counts how many numbers come before its own.
// Bindings: 0 shares, 1 positions, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/reduce.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const bool OF_CHOSEN = false;

layout(set = 0, binding = 0) writeonly buffer Shares { WORD(f32) shares_[]; };
layout(set = 0, binding = 1) writeonly buffer Positions { WORD(i32) positions_[]; };
layout(set = 0, binding = 2) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint width;  // at most MOST_EXPERTS
  uint chosen;
} params;

shared uint order_[MOST_EXPERTS];  // words that are ordered as the numbers are
shared float top_[MOST_EXPERTS];   // the numbers chosen, in order

uint order_of(float v) {
  const uint word = floatBitsToUint(v);
  if ((word & 0x7fffffffu) > 0x7f800000u) return ~0u;  // NaN
  if ((word << 1) == 0u) return 0x80000000u;           // 0 and -0 are equal
  return (word >> 31) != 0u ? ~word : word | 0x80000000u;
}

void main() {
  const uint row = group();
  if (row >= params.rows) return;  // the whole workgroup
  const uint first = row * params.width;
  for (uint e = lane(); e < params.width; e += LANES) order_[e] = order_of(LOAD1(DTYPE, in_, first + e));
  barrier();
  for (uint e = lane(); e < params.width; e += LANES) {
    const uint own = order_[e];
    uint before = 0u;
    for (uint i = 0u; i < params.width; ++i) before += uint(order_[i] > own || (order_[i] == own && i < e));
    if (before >= params.chosen) continue;
    top_[before] = LOAD1(DTYPE, in_, first + e);
    STORE1(i32, positions_, row * params.chosen + before, int(e));
  }
  barrier();
  const float most = top_[0];
  float sum = 0.0;
  if (OF_CHOSEN) {
    for (uint i = lane(); i < params.chosen; i += LANES) sum += exp(top_[i] - most);
  } else {
    for (uint e = lane(); e < params.width; e += LANES) sum += exp(LOAD1(DTYPE, in_, first + e) - most);
  }
  sum = workgroup_sum(sum);
  for (uint i = lane(); i < params.chosen; i += LANES)
    STORE1(f32, shares_, row * params.chosen + i, exp(top_[i] - most) / sum);
}
