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
// Bindings: 0 out, 1 places, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16 i8 u8 i32 i64
#pragma choice POOL max mean adaptive_mean max_with_places
#pragma choice WORK by_one by_one_small by_row by_lanes
#include "core/index.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint POOL = 0;
layout(constant_id = 2) const bool COUNT_PADDING = false;  // of a mean: elements in the padding count as zeros
layout(constant_id = 3) const uint WORK = WORK_by_one;
// Of by_one_small and by_row.
layout(constant_id = 4) const uint KERNEL_H = 1u;
layout(constant_id = 5) const uint KERNEL_W = 1u;
layout(constant_id = 6) const uint STRIDE_W = 1u;
layout(constant_id = 7) const uint DILATION_W = 1u;
layout(constant_id = 8) const uint SHIFT = 0u;  // of by_row: columns from a whole vec4 group to the window of the first of four outputs

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

#define E ONE(DTYPE)
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
#define CARRY(sum, high) if (kMean) high += sum >> 16, sum &= 0xffff
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

// How many elements that part has.
int elements(uint axis, ivec2 window) {
  const int step = int(params.dilation[axis]);
  const ivec2 part = inside(axis, window);
  return max(part.y - part.x + step - 1, 0) / step;
}

float with_padding(uint axis, ivec2 window) { return float(min(window.y, params.end[axis]) - window.x); }

// The window of an output: along each axis from .x to before .y.
struct Window {
  uint plane;  // the first element of its plane
  ivec2 slabs, rows, columns;
};

Window window_of(uint i) {
  uint rest = i;
  Window w;
  w.columns = span(2u, take(rest, params.out_size[2]));
  w.rows = span(1u, take(rest, params.out_size[1]));
  w.slabs = span(0u, take(rest, params.out_size[0]));
  w.plane = rest * params.in_size[0] * params.in_size[1] * params.in_size[2];
  return w;
}

// The place of an element in its plane.
uint place_of(uint z, uint y, uint x) { return (z * params.in_size[1] + y) * params.in_size[2] + x; }

// What the elements so far came to.
struct State {
  E value;     // the largest, or the sum
  int high;    // of a sum of integers: the part above 16 bits, as 32 bits hold no more than 8.4 million differences
  uint place;  // of the largest
};

State start(Window w) {
  const uint first = place_of(uint(inside(0u, w.slabs).x), uint(inside(1u, w.rows).x), uint(inside(2u, w.columns).x));
  return State(kMean ? E(0) : E(LOWEST), 0, first);
}

// What an element contributes. One outside of the image: 0 to a sum, and what is never chosen.
E part_of(E v, bool is_inside) {
  if (kMean) return is_inside ? FROM_ZERO(v) : E(0);
  return is_inside ? v : E(LOWEST);
}

void add(inout State state, E part, uint place) {
  if (POOL == POOL_max) {
    state.value = maximum(state.value, part);
  } else if (POOL == POOL_max_with_places) {
    if (part > state.value || is_nan(part)) {
      state.value = part;
      state.place = place;
    }
  } else {
    state.value += part;
  }
}

E finished(State state, Window w) {
  if (!kMean) return state.value;
  const float all = with_padding(0u, w.slabs) * with_padding(1u, w.rows) * with_padding(2u, w.columns);
  const int live = elements(0u, w.slabs) * elements(1u, w.rows) * elements(2u, w.columns);
  return mean(state.high, state.value, params.divisor != 0.0 ? params.divisor : COUNT_PADDING ? all : float(live));
}

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

State pool_small(Window w) {
  const ivec2 slabs = inside(0u, w.slabs);
  State state = start(w);
  for (int z = slabs.x; z < slabs.y; z += int(params.dilation[0])) {
    [[unroll]] for (uint ky = 0u; ky < KERNEL_H; ++ky) {
      [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
        // Before the first row and column these wrap to numbers beyond the last.
        const uint y = uint(w.rows.x) + ky * params.dilation[1], x = uint(w.columns.x) + kx * DILATION_W;
        const bool is_inside = y < params.in_size[1] && x < params.in_size[2];
        const uint at = place_of(uint(z), y, x), place = is_inside ? at : 0u;
        add(state, part_of(LOAD1(DTYPE, x_, w.plane + place), is_inside), place);
      }
    }
    CARRY(state.value, state.high);
  }
  return state;
}

const bool kShares = WORK == WORK_by_one_small || WORK == WORK_by_lanes;
shared E values_[kShares ? LANES : 1u];
shared int others_[kShares ? LANES : 1u];  // the high parts of sums, or the places

void pool_by_one_small() {
  const Window w = window_of(min(item(), params.count - 1u));
  const State state = pool_small(w);
  values_[lane()] = finished(state, w);
  others_[lane()] = int(state.place);
  barrier();
  const uint at = 4u * lane(), q = group() * (LANES / 4u) + lane();
  if (at >= LANES || 4u * q >= params.count) return;
  store(q, VEC(DTYPE)(values_[at], values_[at + 1u], values_[at + 2u], values_[at + 3u]),
        ivec4(others_[at], others_[at + 1u], others_[at + 2u], others_[at + 3u]));
}

#define GROUPS ((SHIFT + 3u * STRIDE_W + (KERNEL_W - 1u) * DILATION_W + 4u) / 4u)  // vec4 groups that four windows share in a row

void pool_by_row() {
  const uint q = item();
  if (4u * q >= params.count) return;
  Window w[4];
  State states[4];
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    w[i] = window_of(4u * q);
    w[i].columns += int(i * STRIDE_W);
    states[i] = start(w[i]);
  }
  const uint left = uint(w[0].columns.x) - SHIFT;  // before the first column it wraps to a number beyond the last
  const ivec2 slabs = inside(0u, w[0].slabs);
  for (int z = slabs.x; z < slabs.y; z += int(params.dilation[0])) {
    WORD(DTYPE) words[KERNEL_H * GROUPS];
    [[unroll]] for (uint ky = 0u; ky < KERNEL_H; ++ky) {
      [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
        const uint y = uint(w[0].rows.x) + ky * params.dilation[1], x = left + 4u * g;
        const bool is_inside = y < params.in_size[1] && x < params.in_size[2];
        const uint at = (w[0].plane + place_of(uint(z), y, x)) >> 2;
        words[ky * GROUPS + g] = x_[is_inside ? at : 0u];
      }
    }
    [[unroll]] for (uint ky = 0u; ky < KERNEL_H; ++ky) {
      const uint y = uint(w[0].rows.x) + ky * params.dilation[1];
      VEC(DTYPE) parts[GROUPS];
      [[unroll]] for (uint g = 0u; g < GROUPS; ++g) {
        const bool is_inside = y < params.in_size[1] && left + 4u * g < params.in_size[2];
        const VEC(DTYPE) v = UNPACK(DTYPE, words[ky * GROUPS + g]);
        [[unroll]] for (uint k = 0u; k < 4u; ++k) parts[g][k] = part_of(v[k], is_inside);
      }
      [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          const uint c = SHIFT + i * STRIDE_W + kx * DILATION_W;
          add(states[i], parts[c >> 2][c & 3u], place_of(uint(z), y, left + c));
        }
      }
    }
    [[unroll]] for (uint i = 0u; i < 4u; ++i) CARRY(states[i].value, states[i].high);
  }
  VEC(DTYPE) v;
  ivec4 places;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    v[i] = finished(states[i], w[i]);
    places[i] = int(states[i].place);
  }
  store(q, v, places);
}

// The sum of every count-th word of the rows of a window, from the lane's own on.
State sum_of_words(Window w, uint first, uint count) {
  const ivec2 slabs = inside(0u, w.slabs), rows = inside(1u, w.rows), columns = inside(2u, w.columns);
  State state = State(E(0), 0, 0u);
  if (slabs.y <= slabs.x || rows.y <= rows.x || columns.y <= columns.x) return state;
  const uint width = uint(columns.y - columns.x), height = uint(rows.y - rows.x);
  const uint words = (width + 6u) / 4u;  // a row has as many, or one less
  const uint all = words * height * uint(slabs.y - slabs.x);
  for (uint i = first; i < all; i += count) {
    uint rest = i;
    const uint word = take(rest, words), y = uint(rows.x) + take(rest, height), z = uint(slabs.x) + rest;
    const uint begin = w.plane + place_of(z, y, uint(columns.x)), q = (begin >> 2) + word;
    if (4u * q >= begin + width) continue;
    const VEC(DTYPE) v = LOAD4(DTYPE, x_, q);
    [[unroll]] for (uint k = 0u; k < 4u; ++k) {
      const uint at = 4u * q + k;
      state.value += part_of(v[k], at >= begin && at < begin + width);
    }
    CARRY(state.value, state.high);
  }
  return state;
}

void pool_by_lanes() {
  const uint q = group(), quarter = LANES / 4u;
  if (4u * q >= params.count) return;  // the whole workgroup
  const Window w = window_of(min(4u * q + lane() / quarter, params.count - 1u));
  State state = sum_of_words(w, lane() % quarter, quarter);
  values_[lane()] = state.value;
  others_[lane()] = state.high;
  barrier();
  for (uint n = quarter / 2u; n > 0u; n /= 2u) {
    if (lane() % quarter < n) {
      state.value += values_[lane() + n];
      state.high += others_[lane() + n];
      values_[lane()] = state.value;
      others_[lane()] = state.high;
    }
    barrier();
  }
  CARRY(state.value, state.high);
  if (lane() % quarter == 0u) values_[lane()] = finished(state, w);
  barrier();
  if (lane() != 0u) return;
  store(q, VEC(DTYPE)(values_[0], values_[quarter], values_[2u * quarter], values_[3u * quarter]), ivec4(0));
}

void main() {
  switch (WORK) {
    case WORK_by_one_small: pool_by_one_small(); break;
    case WORK_by_row: pool_by_row(); break;
    case WORK_by_lanes: pool_by_lanes(); break;
    default: pool_by_one();
  }
}
