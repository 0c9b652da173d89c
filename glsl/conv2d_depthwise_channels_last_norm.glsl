// SPDX-License-Identifier: Apache-2.0
// conv2d_depthwise_channels_last.glsl and a layer norm of each pixel's channels: a workgroup has all channels of its pixels.
//   y = act(convolution + bias);   out = (y - mean(y)) * rsqrt(mean((y - mean(y))^2) + eps) * norm_weight + norm_bias
// y stays in fp32 registers. Sums over the channels of a pixel: of a lane's four, then of every SUMS-th lane, then of these.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 norm_weight, 5 norm_bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#define NORM
#include "conv/depthwise_channels_last.glslh"
#include "math/math.glslh"

layout(constant_id = 9) const uint VEC4S = 1u;  // of a pixel

layout(set = 0, binding = 4) readonly buffer NormWeight { WORD(DTYPE) norm_weight_[]; };
layout(set = 0, binding = 5) readonly buffer NormBias { WORD(DTYPE) norm_bias_[]; };

const uint kStrips = LANES / PARTS, SUMS = VEC4S < 16u ? VEC4S : 16u;
shared vec4 lanes_[kStrips];                      // a component for each column
shared vec4 sums_[kStrips / VEC4S * SUMS];

// Of the columns of a strip, means over the channels; the lanes of part 0 have them.
vec4 means(vec4 of_lane, uint pixel, uint c) {
  if (lane() < kStrips) lanes_[lane()] = of_lane;
  barrier();
  const uint first = pixel * VEC4S;
  if (lane() < kStrips && c < SUMS) {
    vec4 sum = vec4(0);
    for (uint i = c; i < VEC4S; i += SUMS) sum += lanes_[first + i];
    sums_[pixel * SUMS + c] = sum;
  }
  barrier();
  vec4 sum = vec4(0);
  if (lane() < kStrips) {
    for (uint i = 0u; i < SUMS; ++i) sum += sums_[pixel * SUMS + i];
  }
  return sum / float(4u * VEC4S);
}

void main() {
  const uint mine = lane() % kStrips, at = group() * kStrips + mine, pixel = mine / VEC4S;
  const Strip s = strip_of(at);
  vec4 y[COLUMNS], of_lane = vec4(0);
  sum_strip(s, y);
  finish(s, y);
  [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) of_lane[o] = (y[o].x + y[o].y) + (y[o].z + y[o].w);
  const vec4 mean = means(of_lane, pixel, s.c);
  [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) {
    y[o] -= mean[o];
    of_lane[o] = dot(y[o], y[o]);
  }
  const vec4 variance = means(of_lane, pixel, s.c);
  if (lane() >= kStrips || at >= params.count) return;
  const vec4 weight = LOAD4(DTYPE, norm_weight_, s.c), bias = LOAD4(DTYPE, norm_bias_, s.c);
  [[unroll]] for (uint o = 0u; o < COLUMNS; ++o) y[o] = y[o] * safe_rsqrt(variance[o] + params.eps) * weight + bias;
  store(s, y);
}
