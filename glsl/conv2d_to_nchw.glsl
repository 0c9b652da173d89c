// SPDX-License-Identifier: Apache-2.0
// The channels-last output of conv/matrix.glslh (OUT_channels_last, whole vectors) to NCHW: out[batch, channel, pixel] of
// x[batch, pixel, channel]; signed bytes become u8 again, plus 128. One invocation makes a vec4 group of the output.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f16 f32 i8 u8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };

layout(push_constant) uniform Params {
  uint count;     // of elements
  uint channels;
  uint pixels;    // of an image
} params;

void main() {
  if (4u * item() >= params.count) return;
  VEC(DTYPE) v = ZERO(DTYPE);
  for (uint i = 0u; i < 4u; ++i) {
    uint rest = min(4u * item() + i, params.count - 1u);
    const uint pixel = take(rest, params.pixels), channel = take(rest, params.channels);
    v[i] = LOAD1(DTYPE, x_, (rest * params.pixels + pixel) * params.channels + channel);
  }
#if defined(DTYPE_u8)
  v ^= 0x80;
#endif
  STORE4(DTYPE, out_, item(), v);
}
