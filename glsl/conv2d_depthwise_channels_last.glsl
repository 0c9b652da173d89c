// SPDX-License-Identifier: Apache-2.0
// 2D depthwise convolution of floats whose channels are last: x [batch, in_h, in_w, channels], weight [kernel_h * kernel_w, channels].
//   out[b, y, x, c] = act(sum over (ky, kx) of x[b, y * stride + ky * dilation - pad, .., c] * w[(ky, kx), c] + bias[c])
// A strip is a vec4 group of channels of COLUMNS neighbouring pixels of a row. Neighbouring invocations have neighbouring
// channels, so that a subgroup reads whole lines; what a row of the window needs of x is in registers. PARTS invocations
// of a workgroup share a strip: each sums some rows of its window.
// Bindings: 0 out, 1 x, 2 weight, 3 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#include "math/activation.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const bool HAS_BIAS = false;
layout(constant_id = 2) const uint ACT = ACT_NONE;
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint KERNEL_W = 1;
layout(constant_id = 5) const uint STRIDE_W = 1;
layout(constant_id = 6) const uint DILATION_W = 1;
layout(constant_id = 7) const uint PARTS = 1;  // invocations that share the rows of a window

const uint kSpan = (COLUMNS - 1u) * STRIDE_W + (KERNEL_W - 1u) * DILATION_W + 1u;  // columns of x that are read

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(f32) bias_[]; };  // x again when there is none

shared vec4 parts_[PARTS > 1u ? LANES * COLUMNS : 1u];  // [column][part][strip]

layout(push_constant) uniform Params {
  uint count;   // invocations
  uint vec4s;   // vec4 groups of channels
  uint strips;  // of COLUMNS pixels in a row of the output
  uint in_h;
  uint in_w;
  uint out_h;
  uint out_w;
  uint kernel_h;
  uint kernel_w;
  uint stride_h;
  uint stride_w;
  uint dilation_h;
  uint dilation_w;
  int pad_h;
  int pad_w;
} params;

// Part `part` of the sums of a strip: every PARTS-th row of the window.
void add_rows(uint part, uint image, uint y, uint strip, uint c, inout vec4 sums[COLUMNS]) {
  const int left = int(strip * COLUMNS * STRIDE_W) - params.pad_w, above = int(y * params.stride_h) - params.pad_h;
  for (uint ky = part; ky < params.kernel_h; ky += PARTS) {
    const uint in_y = uint(above + int(ky * params.dilation_h));
    if (in_y >= params.in_h) continue;
    const uint line = (image * params.in_h + in_y) * params.in_w;
    vec4 row[kSpan];
    [[unroll]] for (uint s = 0u; s < kSpan; ++s) {
      const uint in_x = uint(left + int(s));
      row[s] = vec4(0);
      if (in_x < params.in_w) row[s] = LOAD4(DTYPE, x_, (line + in_x) * params.vec4s + c);
    }
    [[unroll]] for (uint kx = 0u; kx < KERNEL_W; ++kx) {
      const vec4 w = LOAD4(DTYPE, weight_, (ky * KERNEL_W + kx) * params.vec4s + c);
      [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) sums[o] += w * row[o * STRIDE_W + kx * DILATION_W];
    }
  }
}

void main() {
  const uint strips = LANES / PARTS, part = lane() / strips, at = group() * strips + lane() % strips;
  uint image = min(at, params.count - 1u);
  const uint c = take(image, params.vec4s), strip = take(image, params.strips), y = take(image, params.out_h);
  vec4 sums[COLUMNS];
  [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) sums[o] = vec4(0);
  add_rows(part, image, y, strip, c, sums);
  if (PARTS > 1u) {
    [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) parts_[o * LANES + lane()] = sums[o];
    barrier();
    if (part != 0u) return;
    [[unroll]] for (uint p = 1u; p < PARTS; ++p) {
      [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) sums[o] += parts_[o * LANES + p * strips + lane()];
    }
  }
  if (at >= params.count) return;
  const vec4 bias = HAS_BIAS ? LOAD4(f32, bias_, c) : vec4(0);
  [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) {
    const uint x = strip * COLUMNS + o;
    if (x >= params.out_w) break;
    const uint pixel = (image * params.out_h + y) * params.out_w + x;
    STORE4(DTYPE, out_, pixel * params.vec4s + c, activate(sums[o] + bias, ACT));
  }
}
