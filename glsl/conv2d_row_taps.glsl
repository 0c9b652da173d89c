// SPDX-License-Identifier: Apache-2.0
// NCHW of few channels to what the taps of a row see, channels-last as conv/load_patches.glslh reads x: out[batch, y, x, vector] of
// x[batch, channel, y, column], for each column x of the convolution's output. A vector is 16 bytes of neighbours in order of
// (kx, channel): a kernel of kernel_h x kernel_w taps then is one of kernel_h x 1 with kernel_w * CHANNELS channels, most of which are
// not padding. Bytes become signed: u8 minus 128, by FLIP. One invocation makes a vector.
// OUT i8: floats are quantized here as quantize.glsl would, with the same bits (ops/conv/quantized_image.h).
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN f16 f32 i8
#pragma variant OUT same i8
#pragma without IN=i8 OUT=i8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#if defined(OUT_i8)
#include "quant/quantize.glslh"
#endif

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };

layout(constant_id = 1) const uint CHANNELS = 1u;
layout(constant_id = 2) const uint TAPS = 1u;     // of a row
layout(constant_id = 3) const uint VECTORS = 1u;  // of the taps of a row
layout(constant_id = 4) const uint STRIDE = 1u;
layout(constant_id = 5) const uint DILATION = 1u;
layout(constant_id = 6) const uint FLIP = 0u;  // bits of a byte that change
layout(constant_id = 7) const uint STEPS = 0u;  // of OUT i8, as the four floats below: STEPS_* of core/modes.glslh

layout(push_constant) uniform Params {
  uint count;  // of vectors
  uint in_h;
  uint in_w;
  uint out_w;
  int pad;      // to the left
  uint border;  // a word of x's zero points, or of 0.0
  float inverse;
  float zero;
  float low;
  float high;
} params;

#if defined(OUT_i8) || defined(IN_i8)
#define BITS 8u
#elif defined(IN_f16)
#define BITS 16u
#else
#define BITS 32u
#endif
#define PER_WORD (32u / BITS)

// Element i of x as one of `out`, in the lowest bits of a word.
uint element(uint i) {
#if defined(OUT_i8)
  return uint(quantize_usual(vec4(LOAD1(IN, x_, i)), params.inverse, params.zero, params.low, params.high, STEPS).x) & 0xffu;
#elif defined(IN_f32)
  return x_[i >> 2][i & 3u];
#elif defined(IN_f16)
  return (x_[i >> 2][(i >> 1) & 1u] >> (16u * (i & 1u))) & 0xffffu;
#else
  return (x_[i >> 2] >> (8u * (i & 3u))) & 0xffu;
#endif
}

void main() {
  if (item() >= params.count) return;
  uint rest = item();
  const uint vector = take(rest, VECTORS), x = take(rest, params.out_w), y = take(rest, params.in_h);
  const uint first = x * STRIDE - uint(params.pad);  // wraps in the padding
  uvec4 words = uvec4(0u);
  [[unroll]] for (uint i = 0u; i < 4u * PER_WORD; ++i) {
    const uint column = vector * 4u * PER_WORD + i, kx = column / CHANNELS, c = column - kx * CHANNELS;
    const uint in_x = first + kx * DILATION, at = ((rest * CHANNELS + c) * params.in_h + y) * params.in_w + in_x;
    const bool inside = kx < TAPS && in_x < params.in_w;
    const uint bits = element(inside ? at : 0u) ^ FLIP;
    words[i / PER_WORD] |= (inside ? bits : params.border >> (32u - BITS)) << (BITS * (i % PER_WORD));
  }
  out_[item()] = words;
}
