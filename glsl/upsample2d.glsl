// SPDX-License-Identifier: Apache-2.0
// out[p, y, x] = x[p] at the place of (y, x) in the input: the nearest element, or interpolated between four. Places are those of
// PyTorch's upsample_nearest2d and upsample_bilinear2d, computed in fp32 as there. One invocation computes a vec4 group.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 u8 i8
#pragma choice UPSAMPLE nearest bilinear bilinear_aligned
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint UPSAMPLE = 0;

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
} params;

// The element at a place. Clamped as a float, which a uint then holds, and as an integer: beyond 2^24 float(size) is rounded.
uint inside(float at, uint size) { return min(uint(min(at, float(size))), size - 1u); }

#if defined(DTYPE_f32) || defined(DTYPE_f16)
// The two elements around a place, and the weight of the second.
struct Pair {
  uint first;
  uint second;
  float weight;
};

Pair between(uint o, uint size, float scale) {
  precise float at = UPSAMPLE == UPSAMPLE_bilinear_aligned ? float(o) * scale : (float(o) + 0.5) * scale - 0.5;
  at = max(at, 0.0);
  const uint first = inside(at, size);
  return Pair(first, min(first + 1u, size - 1u), clamp(at - float(first), 0.0, 1.0));
}
#endif

ONE(DTYPE) sample_at(uint i) {
  uint plane = i;
  const uint ox = take(plane, params.out_w), oy = take(plane, params.out_h);
  const uint begin = plane * params.in_h * params.in_w;
#if defined(DTYPE_f32) || defined(DTYPE_f16)
  if (UPSAMPLE != UPSAMPLE_nearest) {
    const Pair y = between(oy, params.in_h, params.scale_h), x = between(ox, params.in_w, params.scale_w);
    const uint above = begin + y.first * params.in_w, below = begin + y.second * params.in_w;
    const float w = x.weight;
    const float a = (1.0 - w) * LOAD1(DTYPE, x_, above + x.first) + w * LOAD1(DTYPE, x_, above + x.second);
    const float b = (1.0 - w) * LOAD1(DTYPE, x_, below + x.first) + w * LOAD1(DTYPE, x_, below + x.second);
    return (1.0 - y.weight) * a + y.weight * b;
  }
#endif
  const uint y = inside(float(oy) * params.scale_h, params.in_h);
  const uint x = inside(float(ox) * params.scale_w, params.in_w);
  return LOAD1(DTYPE, x_, begin + y * params.in_w + x);
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  VEC(DTYPE) v;
  for (uint i = 0u; i < 4u; ++i) v[i] = sample_at(min(4u * q + i, params.count - 1u));
  STORE4(DTYPE, out_, q, v);
}
