// SPDX-License-Identifier: Apache-2.0
// Vectors (OUT_channels_last of conv/matrix.glslh, whole ones) as other operators read them: out [batch, channel, pixel] of
// x [batch, pixel, channel], bytes of u8 128 more. One invocation makes four neighbouring elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f16 i8 u8
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
