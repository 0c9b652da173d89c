// SPDX-License-Identifier: Apache-2.0
// out[n, c, i, j] = x[n, c] at the place grid[n, i, j] = (across, down), -1 to 1 from border to border of the image: as PyTorch's
// grid_sampler_2d on a CPU, in fp32. One invocation computes a vec4 group, or of f32 up to GRID_CHANNELS elements at
// one place. What lies outside is not read: it may be infinite.
// Bindings: 0 out, 1 x, 2 grid.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma choice INTERPOLATION bilinear nearest bicubic
#pragma choice PADDING zeros border reflection
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"
#include "math/arithmetic.glslh"

layout(constant_id = 1) const uint INTERPOLATION = 0u;
layout(constant_id = 2) const uint PADDING = 0u;
layout(constant_id = 3) const bool ALIGNED = false;  // -1 and 1 are the middles of the outer elements, not their borders

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(set = 0, binding = 2) readonly buffer Grid { WORD(DTYPE) grid_[]; };
layout(push_constant) uniform Params {
  uint items;      // invocations
  uint last;       // element of out
  uint positions;  // of the grid of an image
  uint channels;
  uint in_h;
  uint in_w;
} params;

// Between two walls.
float mirrored(float at, float low, float span) {
  if (span <= 0.0) return 0.0;
  const float away = abs(at - low), rest = fmod(away, span);
  const bool odd = fmod(roundEven((away - rest) / span), 2.0) != 0.0;
  return (odd ? span - rest : rest) + low;
}

float padded(float at, float size) {
  if (PADDING == PADDING_zeros) return at;
  if (PADDING == PADDING_reflection) at = ALIGNED ? mirrored(at, 0.0, size - 1.0) : mirrored(at, -0.5, size);
  return clamp(at, 0.0, size - 1.0);
}

// In elements: 0 is the middle of the first one.
float place(float coordinate, float size) {
  precise float at = (coordinate + 1.0) * (ALIGNED ? (size - 1.0) * 0.5 : size * 0.5);
  if (!ALIGNED) at -= 0.5;
  return at;
}

float element(uint begin, vec2 at) {
  const bool inside = at.x >= 0.0 && at.x < float(params.in_w) && at.y >= 0.0 && at.y < float(params.in_h);
  return inside ? LOAD1(DTYPE, x_, begin + uint(at.y) * params.in_w + uint(at.x)) : 0.0;
}

// Of the elements around a place, t after the second one (Keys, with A = -0.75).
vec4 cubic(float t) {
  const float a = -0.75;
  const vec2 far = vec2(t + 1.0, 2.0 - t), near = vec2(t, 1.0 - t);
  const vec2 outer = ((a * far - 5.0 * a) * far + 8.0 * a) * far - 4.0 * a;
  const vec2 inner = ((a + 2.0) * near - (a + 3.0)) * near * near + 1.0;
  return vec4(outer.x, inner, outer.y);
}

float bicubic(uint begin, vec2 at) {
  const vec2 low = floor(at);
  const vec4 across = cubic(at.x - low.x), down = cubic(at.y - low.y);
  vec4 x = vec4(0.0), y = vec4(0.0);
  // 4; where places are reflected a compiler cannot know it, so that this long code is not repeated.
  const uint taps = PADDING == PADDING_reflection ? min(4u, params.items + 3u) : 4u;
  for (uint i = 0u; i < taps; ++i) {
    x[i] = padded(low.x + float(i) - 1.0, float(params.in_w));
    y[i] = padded(low.y + float(i) - 1.0, float(params.in_h));
  }
  float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    float row = 0.0;
    [[unroll]] for (uint j = 0u; j < 4u; ++j) row += across[j] * element(begin, vec2(x[j], y[i]));
    sum += down[i] * row;
  }
  return sum;
}

float bilinear(uint begin, vec2 at) {
  const vec2 low = floor(at), high = low + 1.0, after = at - low, before = high - at;
  return element(begin, low) * before.x * before.y + element(begin, vec2(high.x, low.y)) * after.x * before.y +
         element(begin, vec2(low.x, high.y)) * before.x * after.y + element(begin, high) * after.x * after.y;
}

// The place of a position of the grid.
vec2 place_of(uint position) {
  const vec2 size = vec2(params.in_w, params.in_h);
  const uint g = 2u * position;
  const vec2 at = vec2(place(LOAD1(DTYPE, grid_, g), size.x), place(LOAD1(DTYPE, grid_, g + 1u), size.y));
  if (INTERPOLATION == INTERPOLATION_bicubic) return at;  // its elements are padded one by one
  return vec2(padded(at.x, size.x), padded(at.y, size.y));
}

float value_at(uint plane, vec2 at) {
  const uint begin = plane * params.in_h * params.in_w;
  if (INTERPOLATION == INTERPOLATION_bicubic) return bicubic(begin, at);
  return INTERPOLATION == INTERPOLATION_nearest ? element(begin, roundEven(at)) : bilinear(begin, at);
}

#ifdef DTYPE_f16
// Of an element of out.
float value_of(uint rest) {
  const uint position = take(rest, params.positions);
  return value_at(rest, place_of(rest / params.channels * params.positions + position));
}
#endif

void main() {
  if (item() >= params.items) return;
#ifdef DTYPE_f32  // neighbours in the grid by neighbouring invocations, whose elements lie near each other
  uint rest = item();
  const uint position = take(rest, params.positions), chunk = take(rest, (params.channels + GRID_CHANNELS - 1u) / GRID_CHANNELS);
  const vec2 at = place_of(rest * params.positions + position);
  for (uint c = chunk * GRID_CHANNELS; c < min(params.channels, (chunk + 1u) * GRID_CHANNELS); ++c) {
    const uint plane = rest * params.channels + c;
    STORE1(f32, out_, plane * params.positions + position, value_at(plane, at));
  }
#else
  vec4 v = vec4(0.0);
  if (INTERPOLATION == INTERPOLATION_bicubic && PADDING == PADDING_reflection) {
    // One after the other: a quarter of the long code, and 16 loads of one are enough to wait for together.
    const uint count = min(4u, params.last + 1u - 4u * item());
    for (uint i = 0u; i < count; ++i) v[i] = value_of(4u * item() + i);
  } else {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) v[i] = value_of(min(4u * item() + i, params.last));
  }
  STORE4(DTYPE, out_, item(), v);
#endif
}
