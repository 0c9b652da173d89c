// SPDX-License-Identifier: Apache-2.0
// A convolution of single pixels, which expands channels, and the depthwise convolution that alone reads it:
//   middle[n] = act(x[n] * w + bias), rounded to fp16;   out = depthwise_act(depthwise(middle) + depthwise_bias)
// A workgroup has 16 channels of a strip of rows of the output. It computes what the strip's windows see of middle by cooperative
// matrices (conv/fragment_tiles.glslh), all columns of a block of 8 pixels in a subgroup, and keeps that in shared memory; rows
// that two strips see are computed twice. OUT_means, of whole planes: also the mean of each plane of the output as stored.
// Rounding: as of conv/fragments.glslh, then as of conv/depthwise.glslh of what is rounded.
// Bindings: 0 out, of OUT_means 1 means [batch, channels]; then x channels-last, the packed weight, its bias, the depthwise weight
// [channels, window], its bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#pragma variant OUT nchw channels_last means
#define DTYPE f16
#define DTYPE_f16 1
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"
#include "math/activation.glslh"

layout(constant_id = 1) const uint BIASES = 0u;  // bit 0: of the weight; bit 1: of the depthwise one
layout(constant_id = 2) const uint ACT = ACT_NONE;
layout(constant_id = 3) const uint DEPTHWISE_ACT = ACT_NONE;
layout(constant_id = 4) const uint PIXEL_VECTORS = 1u;  // of 8 channels of x
layout(constant_id = 5) const uint BLOCKS = 1u;         // of 8 pixels of a subgroup
layout(constant_id = 6) const uint STRIPS = 1u;         // of a plane
layout(constant_id = 7) const uint ROWS = 1u;           // of the output in a strip
layout(constant_id = 8) const uint IN_WIDTH = 1u;
layout(constant_id = 9) const uint WIDTH = 1u;
layout(constant_id = 10) const uint WINDOW_H = 1u;
layout(constant_id = 11) const uint WINDOW_W = 1u;
layout(constant_id = 12) const uint STRIDE_H = 1u;
layout(constant_id = 13) const uint STRIDE_W = 1u;
layout(constant_id = 14) const uint COLUMNS = 1u;  // outputs of a row that a lane computes at a time

#if defined(OUT_means)
#define FIRST_READ 2
#else
#define FIRST_READ 1
#endif
layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = FIRST_READ) readonly buffer X { uvec4 x_[]; };
layout(set = 0, binding = FIRST_READ + 1) readonly buffer Weight { uvec4 weight_[]; };
layout(set = 0, binding = FIRST_READ + 2) readonly buffer Bias { float bias_[]; };  // any buffer when there is none
layout(set = 0, binding = FIRST_READ + 3) readonly buffer Depthwise { WORD(DTYPE) depthwise_[]; };
layout(set = 0, binding = FIRST_READ + 4) readonly buffer DepthwiseBias { float depthwise_bias_[]; };

layout(push_constant) uniform Params {
  CONV_MATRIX_PARAMS  // of the convolution of single pixels
  uint last_h;        // rows of the last output
  int pad_h;
  int pad_w;
} params;

#define PANELS 1u
#define SLOTS 1u
#define HELD 1u
#define KERNEL_W 1u
#define PATCH_VECTORS PIXEL_VECTORS
#define PADDED 0u
#define SAME_PIXELS true
#include "conv/fragment_tiles.glslh"

const uint kSubgroups = LANES / 32u, kBlocksOfRow = (WIDTH + COLUMNS - 1u) / COLUMNS, kOutputs = ROWS * WIDTH;
const uint kSpan = (COLUMNS - 1u) * STRIDE_W + WINDOW_W;  // columns that a lane sees at a time
const uint kRows = (ROWS - 1u) * STRIDE_H + WINDOW_H;     // rows that a strip sees
// Odd, so that rows begin in different banks; with padding at the sides.
const uint kPitch = (kBlocksOfRow - 1u) * COLUMNS * STRIDE_W + kSpan | 1u;
shared uint middle_[kRows * kPitch * 8u];     // [row][column][r]: channels r and r + 8, which a lane has of a pixel
shared vec2 taps_[WINDOW_H * WINDOW_W * 8u];  // [tap][r], likewise
shared float outputs_[16u * kOutputs];        // [channel][pixel]

#if defined(OUT_means)
layout(set = 0, binding = 1) writeonly buffer Means { WORD(DTYPE) means_[]; };
shared float sums_[LANES];
#endif

struct Strip {
  uint image, panel, index;
  int top;             // the first row of the input that it sees
  uint first_n, seen;  // the first pixel of x that there is, and how many follow; none, if any is
};

Strip strip_of(uint at) {
  Strip s;
  s.index = take(at, STRIPS);
  s.panel = take(at, params.channels / 16u);
  s.image = at;
  s.top = int(s.index * ROWS * STRIDE_H) - params.pad_h;
  const int first = max(s.top, 0), end = min(s.top + int(kRows), int(params.in_h));
  s.first_n = (s.image * params.in_h + uint(first)) * IN_WIDTH;
  s.seen = uint(max(end - first, 0)) * IN_WIDTH;
  return s;
}

// What is not of the image, and the weight's taps.
void fill(Strip s) {
  for (uint i = lane(); i < WINDOW_H * WINDOW_W * 8u; i += LANES) {
    const uint k = i >> 3, at = (s.panel * 16u + (i & 7u)) * WINDOW_H * WINDOW_W + k;
    taps_[i] = vec2(LOAD1(DTYPE, depthwise_, at), LOAD1(DTYPE, depthwise_, at + 8u * WINDOW_H * WINDOW_W));
  }
  for (uint i = lane(); i < kRows * kPitch * 8u; i += LANES) {
    const uint row = (i >> 3) / kPitch, column = (i >> 3) - row * kPitch;
    // Wraps before the first row and column.
    if (uint(s.top) + row >= params.in_h || column - uint(params.pad_w) >= IN_WIDTH) middle_[i] = 0u;
  }
}

// Of channels r and r + 8 of a panel.
vec2 pair_of(uint panel, uint r, uint which) {
  const uint at = panel * 16u + r;
  if ((BIASES & 1u << which) == 0u) return vec2(0.0);
  return which == 0u ? vec2(bias_[at], bias_[at + 8u]) : vec2(depthwise_bias_[at], depthwise_bias_[at + 8u]);
}

void expand(Strip s) {
  const uint l = lane() & 31u, r = l >> 2;
  const vec2 bias = pair_of(s.panel, r, 0u);
  for (uint tile = 0u; tile < TILES; ++tile) {
    multiply_tile(0u, tile + 1u, l);
    if (tile + 1u < TILES) load_weights(s.panel, tile + 1u, 0u, l);
  }
  const int above = max(-s.top, 0);
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    const vec4 sums = vec4(sum_at(0u, b, 0u), sum_at(0u, b, 2u), sum_at(0u, b, 1u), sum_at(0u, b, 3u));
    const vec4 v = activate(sums + bias.xyxy, ACT);
    [[unroll]] for (uint e = 0u; e < 2u; ++e) {
      const uint at = ((lane() >> 5) + b * kSubgroups) * 8u + (l & 3u) * 2u + e, row = at / IN_WIDTH;
      const uint column = at - row * IN_WIDTH + uint(params.pad_w);
      if (at < s.seen && column < kPitch) {
        middle_[((row + uint(above)) * kPitch + column) * 8u + r] = packHalf2x16(e == 0u ? v.xy : v.zw);
      }
    }
  }
}

// Lanes of a subgroup have the pairs of channels of blocks of neighbouring rows, which begin in different banks.
void convolve(Strip s) {
  const uint r = lane() & 7u;
  const vec2 bias = pair_of(s.panel, r, 1u);
  for (uint i = lane() >> 3; i < ROWS * kBlocksOfRow; i += LANES / 8u) {
    const uint block = i / ROWS, row = i - block * ROWS;
    vec2 sums[COLUMNS];
    [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) sums[c] = vec2(0.0);
    [[unroll]] for (uint ky = 0u; ky < WINDOW_H; ++ky) {
      vec2 seen[kSpan];
      const uint from = ((row * STRIDE_H + ky) * kPitch + block * COLUMNS * STRIDE_W) * 8u + r;
      [[unroll]] for (uint x = 0u; x < kSpan; ++x) seen[x] = unpackHalf2x16(middle_[from + x * 8u]);
      [[unroll]] for (uint kx = 0u; kx < WINDOW_W; ++kx) {
        const vec2 tap = taps_[(ky * WINDOW_W + kx) * 8u + r];
        [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) sums[c] += seen[c * STRIDE_W + kx] * tap;
      }
    }
    [[unroll]] for (uint c = 0u; c < COLUMNS; ++c) {
      const vec2 v = activate((sums[c] + bias).xyxy, DEPTHWISE_ACT).xy;
      const uint x = block * COLUMNS + c, at = row * WIDTH + x;
      if (x >= WIDTH) continue;
      outputs_[r * kOutputs + at] = v.x;
      outputs_[(r + 8u) * kOutputs + at] = v.y;
    }
  }
}

#if defined(OUT_channels_last)
void store(Strip s, uint count) {
  const uint first = s.image * params.last_h * WIDTH + s.index * kOutputs;
  for (uint i = lane(); i < count * 4u; i += LANES) {
    const uint four = i & 3u, pixel = i >> 2, at = four * 4u * kOutputs + pixel;
    const vec4 v = vec4(outputs_[at], outputs_[at + kOutputs], outputs_[at + 2u * kOutputs], outputs_[at + 3u * kOutputs]);
    STORE4(DTYPE, out_, (first + pixel) * (params.channels >> 2) + s.panel * 4u + four, v);
  }
}
#else
// A strip has whole vec4 groups of a plane, or all of it; then 16 planes are whole vec4 groups.
void store(Strip s, uint count) {
  const uint plane = params.last_h * WIDTH, first = (s.image * params.channels + s.panel * 16u) * plane + s.index * kOutputs;
  for (uint i = 4u * lane(); i < 16u * kOutputs; i += 4u * LANES) {
    const vec4 v = vec4(outputs_[i], outputs_[i + 1u], outputs_[i + 2u], outputs_[i + 3u]);
    const uint channel = STRIPS == 1u ? 0u : i / kOutputs, at = i - channel * kOutputs;
    if (STRIPS == 1u || at < count) STORE4(DTYPE, out_, (first + channel * plane + at) >> 2, v);
  }
}
#endif

#if defined(OUT_means)
void store_means(Strip s) {
  const uint each = LANES / 16u, channel = lane() / each, at = lane() % each;  // a power of two
  float sum = 0.0;
  for (uint i = at; i < kOutputs; i += each) {
    sum += rounded_to_f16(vec2(outputs_[channel * kOutputs + i], 0.0), params.last_h >> 31).x;
  }
  sums_[lane()] = sum;
  barrier();
  for (uint n = each >> 1; n != 0u; n >>= 1) {
    if (at < n) sums_[lane()] += sums_[lane() + n];
    barrier();
  }
  if (lane() >= 4u) return;
  const uint from = lane() * 4u * each;
  const vec4 sums = vec4(sums_[from], sums_[from + each], sums_[from + 2u * each], sums_[from + 3u * each]);
  STORE4(DTYPE, means_, (s.image * params.channels + s.panel * 16u >> 2) + lane(), sums / float(kOutputs));
}
#endif

void main() {
  const Strip s = strip_of(group());
  if (s.image * params.plane >= params.pixels) return;  // the whole workgroup
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    begin_pixel(b, s.first_n + ((lane() >> 5) + b * kSubgroups) * 8u + ((lane() & 31u) >> 2));
  }
  begin_sums();
  load_tile(s.panel, 0u, 0u, lane() & 31u);
  fill(s);
  expand(s);
  barrier();
  convolve(s);
  barrier();
  const uint count = min(ROWS, params.last_h - s.index * ROWS) * WIDTH;
  store(s, count);
#if defined(OUT_means)
  store_means(s);
#endif
}
