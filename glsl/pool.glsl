// SPDX-License-Identifier: Apache-2.0
// out[p, z, y, x] = the largest, or the mean, of the elements of plane p of the input in the window of (z, y, x); windows of
// fewer dimensions have ones in front. max_with_places also writes where in its plane the largest is: the first of equal ones,
// the last NaN. Means of integers are exact sums, scaled and rounded once:
//   clamp(round(sum(x - x_zero) * x_scale / divisor / out_scale) + out_zero, low, high)
// WORK:
//   by_one    an invocation computes a vec4 group of outputs, one after another
//   by_one_small  an invocation computes one output, neighbours make a vec4 group. Windows have a constant size, so that a driver
//             loads all their elements before it waits for the first
//   by_row    the same sizes, and rows of x and of the output are whole vec4 groups: an invocation loads those that the windows of
//             four neighbouring outputs share
//   by_lanes  means of elements without gaps: a workgroup computes a vec4 group, a quarter of its lanes each output
//   by_channels  of images whose channels are last: pool/channels.glslh
// Bindings: 0 out, 1 places, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16 i8 u8 i32 i64
#pragma choice POOL max mean adaptive_mean max_with_places
#pragma choice WORK by_one by_one_small by_row by_lanes by_channels
#include "core/index.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint POOL = 0;
layout(constant_id = 2) const bool COUNT_PADDING = false;  // of a mean: elements in the padding count as zeros
layout(constant_id = 3) const uint WORK = WORK_by_one;
// Of by_one_small, by_row and by_channels.
layout(constant_id = 4) const uint KERNEL_H = 1u;
layout(constant_id = 5) const uint KERNEL_W = 1u;
layout(constant_id = 6) const uint STRIDE_W = 1u;
layout(constant_id = 7) const uint DILATION_W = 1u;
layout(constant_id = 8) const uint SHIFT = 0u;  // of by_row: columns from a whole vec4 group to the window of the first of four outputs
// Of by_channels.
layout(constant_id = 9) const uint PIXEL_WORDS = 1u;   // of four channels
layout(constant_id = 10) const uint PARTS = 1u;        // lanes that share a mean of all pixels; 1: small windows
layout(constant_id = 11) const uint PLANE = 1u;        // pixels of an image, where PARTS is not 1
layout(constant_id = 12) const bool SIGNED_OUT = false;  // bytes of the output are signed, as those of x

const bool kMean = POOL == POOL_mean || POOL == POOL_adaptive_mean;

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

#include "pool/window.glslh"

State pool(Window w) {
  const ivec2 slabs = inside(0u, w.slabs), rows = inside(1u, w.rows), columns = inside(2u, w.columns);
  State state = start(w);
  for (int z = slabs.x; z < slabs.y; z += int(params.dilation[0])) {
    for (int y = rows.x; y < rows.y; y += int(params.dilation[1])) {
      for (int x = columns.x; x < columns.y; x += int(params.dilation[2])) {
        const uint place = place_of(uint(z), uint(y), uint(x));
        add(state, part_of(LOAD1(DTYPE, x_, w.plane + place), true), place);
      }
      CARRY(state.value, state.high);
    }
  }
  return state;
}

void store(uint q, VEC(DTYPE) v, ivec4 places) {
  STORE4(DTYPE, out_, q, v);
  if (POOL == POOL_max_with_places) STORE4(i32, places_, q, places);
}

void pool_by_one() {
  const uint q = item();
  if (4u * q >= params.count) return;
  VEC(DTYPE) v;
  ivec4 places;
  for (uint i = 0u; i < 4u; ++i) {
    const Window w = window_of(min(4u * q + i, params.count - 1u));
    const State state = pool(w);
    v[i] = finished(state, w);
    places[i] = int(state.place);
  }
  store(q, v, places);
}

const bool kShares = WORK == WORK_by_one_small || WORK == WORK_by_lanes;
const uint kShared = WORK == WORK_by_channels && PARTS > 1u ? 4u * LANES : kShares ? LANES : 1u;
shared E values_[kShared];
shared int others_[kShared];  // the high parts of sums, or the places

#include "pool/small.glslh"
#include "pool/lanes.glslh"
#if !(defined(DTYPE_i32) || defined(DTYPE_i64))
#include "pool/channels.glslh"
#else
void pool_by_channels() {}  // no convolution writes these
#endif

void main() {
  switch (WORK) {
    case WORK_by_one_small: pool_by_one_small(); break;
    case WORK_by_row: pool_by_row(); break;
    case WORK_by_lanes: pool_by_lanes(); break;
    case WORK_by_channels: pool_by_channels(); break;
    default: pool_by_one();
  }
}
