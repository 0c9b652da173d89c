// SPDX-License-Identifier: Apache-2.0
// 2D depthwise convolution of floats whose channels are last: x [batch, in_h, in_w, channels], weight [kernel_h * kernel_w, channels].
//   out[b, y, x, c] = act(sum over (ky, kx) of x[b, y * stride + ky * dilation - pad, .., c] * w[(ky, kx), c] + bias[c])
// conv/depthwise_channels_last.glslh.
// Bindings: 0 out, 1 x, 2 weight, 3 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#include "conv/depthwise_channels_last.glslh"

void main() {
  const uint strips = LANES / PARTS, at = group() * strips + lane() % strips;
  const Strip s = strip_of(at);
  vec4 sums[COLUMNS];
  sum_strip(s, sums);
  if (lane() >= strips || at >= params.count) return;
  finish(s, sums);
  store(s, sums);
}
