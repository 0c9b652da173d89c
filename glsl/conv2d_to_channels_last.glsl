// SPDX-License-Identifier: Apache-2.0
// NCHW to the channels-last layout of conv/matrix.glslh: out[batch, y, x, vector] of x[batch, channel, y, x], a vector 16 bytes of
// neighbouring channels (zeros after the last one); those of fp32 are two such vectors for eight channels. Bytes become signed: u8
// minus 128. One invocation makes one vector of each of four neighbouring pixels (WHOLE_VEC4), else of one pixel. HAS_FACTORS, of fp32,
// and of fp16 without WHOLE_VEC4: x is multiplied by factors[batch, channel] and rounded to its type.
// Bindings: 0 out, 1 x, 2 factors.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN f16 f32 i8 u8
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
layout(set = 0, binding = 2) readonly buffer Factors { WORD(IN) factors_[]; };  // x where there are none

layout(constant_id = 1) const uint WHOLE_VEC4 = 0u;     // h * w is a multiple of 4
layout(constant_id = 2) const uint TOGETHER = 1u;  // vectors of a pixel that neighbouring invocations make: 1, 2 or 4
layout(constant_id = 3) const uint HAS_FACTORS = 0u;

layout(push_constant) uniform Params {
  uint batch;
  uint channels;
  uint pixels;  // of an image
  uint vectors;   // of a pixel
} params;

#if defined(IN_f16)
#define CHANNELS_PER_VECTOR 8u
#elif defined(IN_f32)
#define CHANNELS_PER_VECTOR 4u
#else
#define CHANNELS_PER_VECTOR 16u
#endif

#if defined(IN_u8)
#define SIGNED(word) ((word) ^ 0x80808080u)
#else
#define SIGNED(word) (word)
#endif

// Pixels p .. p+3 of a channel: a vec4 group as stored.
WORD(IN) vec4_at(uint plane, uint c, uint p) {
  return c < params.channels ? x_[(plane + c * params.pixels + p) >> 2] : WORD(IN)(0);
}

#if defined(IN_f32)
// x of channel c of the image whose first one is `first`; past its last one x is 0, and stays so.
vec4 scaled(vec4 x, uint first, uint c) {
  return HAS_FACTORS != 0u && c < params.channels ? x * LOAD1(f32, factors_, first + c) : x;
}
#endif

void transpose_vec4(uint plane, uint c, uint p, out uvec4 transposed[4]) {
#if defined(IN_f16)
  [[unroll]] for (uint w = 0u; w < 4u; ++w) {
    const uvec2 a = vec4_at(plane, c + 2u * w, p), b = vec4_at(plane, c + 2u * w + 1u, p);
    transposed[0][w] = (a.x & 0xffffu) | (b.x << 16);
    transposed[1][w] = (a.x >> 16) | (b.x & 0xffff0000u);
    transposed[2][w] = (a.y & 0xffffu) | (b.y << 16);
    transposed[3][w] = (a.y >> 16) | (b.y & 0xffff0000u);
  }
#elif defined(IN_f32)
  [[unroll]] for (uint w = 0u; w < 4u; ++w) {
    const vec4 a = scaled(uintBitsToFloat(vec4_at(plane, c + w, p)), plane / params.pixels, c + w);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) transposed[i][w] = floatBitsToUint(a[i]);
  }
#else
  [[unroll]] for (uint w = 0u; w < 4u; ++w) {
    const uint a = vec4_at(plane, c + 4u * w, p), b = vec4_at(plane, c + 4u * w + 1u, p);
    const uint d = vec4_at(plane, c + 4u * w + 2u, p), e = vec4_at(plane, c + 4u * w + 3u, p);
    // Interleaves the bytes of two channels, then of four.
    const uint ab_low = (a & 0x00ff00ffu) | ((b & 0x00ff00ffu) << 8), ab_high = ((a >> 8) & 0x00ff00ffu) | (b & 0xff00ff00u);
    const uint de_low = (d & 0x00ff00ffu) | ((e & 0x00ff00ffu) << 8), de_high = ((d >> 8) & 0x00ff00ffu) | (e & 0xff00ff00u);
    transposed[0][w] = SIGNED((ab_low & 0xffffu) | (de_low << 16));
    transposed[1][w] = SIGNED((ab_high & 0xffffu) | (de_high << 16));
    transposed[2][w] = SIGNED((ab_low >> 16) | (de_low & 0xffff0000u));
    transposed[3][w] = SIGNED((ab_high >> 16) | (de_high & 0xffff0000u));
  }
#endif
}

#if defined(IN_f16)
// Pixel p of a channel, counted through the batch: a half.
uint half_at(uint channel, uint p) {
  const uint at = channel * params.pixels + p, half_ = (x_[at >> 2][(at >> 1) & 1u] >> (16u * (at & 1u))) & 0xffffu;
  if (HAS_FACTORS == 0u) return half_;
  return packHalf2x16(vec2(unpackHalf2x16(half_).x * LOAD1(f16, factors_, channel), 0.0));
}
#endif

uvec4 transpose_one(uint image, uint c, uint p) {
  const uint first = image * params.channels;
  uvec4 transposed;
#if defined(IN_f16)
  [[unroll]] for (uint i = 0u; i < 8u; ++i) {
    const uint half_ = c + i < params.channels ? half_at(first + c + i, p) : 0u;
    transposed[i / 2u] = i % 2u == 0u ? half_ : transposed[i / 2u] | (half_ << 16);
  }
#elif defined(IN_f32)
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const uint at = (first + c + i) * params.pixels + p;
    const vec4 x = vec4(c + i < params.channels ? uintBitsToFloat(x_[at >> 2][at & 3u]) : 0.0);
    transposed[i] = floatBitsToUint(scaled(x, first, c + i).x);
  }
#else
  [[unroll]] for (uint w = 0u; w < 4u; ++w) {
    ivec4 v = ivec4(0);
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const uint channel = c + 4u * w + i;
      if (channel < params.channels) v[i] = LOAD1(IN, x_, (first + channel) * params.pixels + p);
    }
    transposed[w] = SIGNED(pack_u8(v));
  }
#endif
  return transposed;
}

void main() {
  const uint at_once = WHOLE_VEC4 != 0u ? 4u : 1u;
  uint rest = item();
  uint vector = take(rest, TOGETHER);
  const uint p = take(rest, params.pixels / at_once) * at_once;
  vector += take(rest, params.vectors / TOGETHER) * TOGETHER;
  if (rest >= params.batch) return;
  const uint plane = rest * params.channels * params.pixels, first = (rest * params.pixels + p) * params.vectors + vector;
  uvec4 transposed[4];
  if (WHOLE_VEC4 != 0u) transpose_vec4(plane, vector * CHANNELS_PER_VECTOR, p, transposed);
  else transposed[0] = transpose_one(rest, vector * CHANNELS_PER_VECTOR, p);
  for (uint i = 0u; i < at_once; ++i) out_[first + i * params.vectors] = transposed[i];
}
