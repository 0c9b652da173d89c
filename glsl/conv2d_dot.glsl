// SPDX-License-Identifier: Apache-2.0
// 2D convolution of 8-bit integers in one group by dot products of packed bytes, with exact sums.
//   real[b, n, y, x] = act(sum_k (patch(b, y, x)[k] - x_zero) * w[n, k] * (x_scale * scale[n]) + bias[n])
// stored as floats, or as clamp(round(real / out_scale) + out_zero, low, high).
//
// x is channels-last; it, the weight, the chunks of four vectors and the splits are those of conv/matrix.glslh. A workgroup
// computes BM x BN outputs, an invocation TM x TN of them in registers; LANES = (BM / TM) * (BN / TN), TN a multiple of 4. Rows in
// shared memory have a vector of padding, which keeps eight of them in different banks. Rows of pixels are permuted (slot()), so
// that an invocation's outputs are neighbouring pixels and the rows that it reads follow each other.
// Bindings: 0 out, 1 partial sums, 2 tickets, 3 x, 4 weight, 5 bias, 6 scale, 7 weight sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_integer_dot_product : require
#pragma variant DTYPE f32 f16 i8 u8
#define INTEGERS
#define OUT_nchw
#define END_BINDING 5
#include "conv/epilogue.glslh"
#include "core/index.glslh"

layout(set = 0, binding = 3) readonly buffer X { uvec4 x_[]; };          // conv2d_to_channels_last.glsl
layout(set = 0, binding = 4) readonly buffer Weight { uvec4 weight_[]; };  // conv2d_pack.glsl

layout(constant_id = 6) const uint BM = 64u;
layout(constant_id = 7) const uint BN = 64u;
layout(constant_id = 8) const uint TM = 8u;
layout(constant_id = 9) const uint TN = 4u;
layout(constant_id = 10) const uint PIXEL_VECTORS = 1u;  // of an input pixel
layout(constant_id = 11) const uint KERNEL_W = 1u;
layout(constant_id = 12) const uint PATCH_VECTORS = 1u;  // of a patch
layout(constant_id = 13) const uint SPLITS = 1u;
layout(constant_id = 14) const uint PADDED = 1u;  // there is padding
layout(constant_id = 15) const bool LAST_ADDS = true;  // conv/split_k.glslh

#define CHUNKS ((PATCH_VECTORS + 3u) / 4u)
#define ROW 5u
#define LANES_N (BN / TN)
#define LANES_M (BM / TM)
#define X_LOADS (BN * 4u / LANES)
#define W_LOADS (BM * 4u / LANES)

shared uvec4 a_[BM * ROW], b_[BN * ROW];
uvec4 w_next_[W_LOADS];
int sum_[TM * TN];

#define TICKET a_[0].x
#include "conv/split_k.glslh"
#include "conv/load_patches.glslh"

uint lane_n() { return lane() % LANES_N; }
uint lane_m() { return lane() / LANES_N; }
uint slot(uint row) { return (row & 3u) * (BN / 4u) + (row >> 2); }

void load_chunk(uint chunk, uint first_m) {
  load_patches(chunk, 0u);
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint row = min(first_m + (lane() + r * LANES) / 4u, params.channels - 1u);
    w_next_[r] = weight_[(chunk * params.channels + row) * 4u + (lane() & 3u)];
  }
}

void store_chunk() {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) b_[slot((lane() + r * LANES) / 4u) * ROW + (lane() & 3u)] = loaded_patch(r);
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) a_[(lane() + r * LANES) / 4u * ROW + (lane() & 3u)] = w_next_[r];
}

void multiply_step(uint vector) {
  uvec4 b[TN];
  [[unroll]] for (uint j = 0u; j < TN; ++j) {
    b[j] = b_[((j & 3u) * (BN / 4u) + (j >> 2) * LANES_N + lane_n()) * ROW + vector];
  }
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    const uvec4 a = a_[(i * LANES_M + lane_m()) * ROW + vector];
    [[unroll]] for (uint j = 0u; j < TN; ++j) {
      const uint at = i * TN + j;
      sum_[at] += dotPacked4x8EXT(int(a.x), int(b[j].x));
      sum_[at] += dotPacked4x8EXT(int(a.y), int(b[j].y));
      sum_[at] += dotPacked4x8EXT(int(a.z), int(b[j].z));
      sum_[at] += dotPacked4x8EXT(int(a.w), int(b[j].w));
    }
  }
}

// Of the least tiles a loop: they are for the fewest registers, which do not hold what compilers load ahead of unrolled steps.
void multiply_chunk() {
  if (TM * TN < 16u) {
    [[dont_unroll]] for (uint vector = 0u; vector < 4u; ++vector) multiply_step(vector);
  } else {
    [[unroll]] for (uint vector = 0u; vector < 4u; ++vector) multiply_step(vector);
  }
}

uint row_of(uint first_m, uint i) { return first_m + i * LANES_M + lane_m(); }
uint pixel_of(uint first_n, uint j) { return first_n + (j * LANES_N + 4u * lane_n()); }

// The sums of rows `m` of a split, four pixels from `n` on.
uint part_of(uint split, uint m, uint n) { return (split * params.channels + m) * ((params.pixels + 3u) >> 2) + (n >> 2); }

uvec4 sums(uint i, uint j) {
  const uint at = i * TN + j;
  return uvec4(sum_[at], sum_[at + 1u], sum_[at + 2u], sum_[at + 3u]);
}

void store_split(uint first_m, uint first_n, uint split) {
  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    const uint m = row_of(first_m, i);
    [[unroll]] for (uint j = 0u; j < TN; j += 4u) {
      const uint n = pixel_of(first_n, j);
      if (m < params.channels && n < params.pixels) partial_[part_of(split, m, n)] = sums(i, j);
    }
  }
}

// The rows are a loop, as what stores them is much code, in which sums stay in registers, as none is addressed.
void store_outputs(uint first_m, uint first_n) {
  [[dont_unroll]] for (uint i = 0u; i < TM; ++i) {
    const uint m = row_of(first_m, i);
    [[unroll]] for (uint j = 0u; j < TN; j += 4u) {
      const uint n = pixel_of(first_n, j);
      uvec4 found = sums(0u, j);
      [[unroll]] for (uint other = 1u; other < TM; ++other) found = other == i ? sums(other, j) : found;
      if (m < params.channels && n < params.pixels) store_pixels(m, n, finished(m, found));
    }
  }
}

// The sums of all splits in place of those of one.
void add_splits(uint first_m, uint first_n) {
  [[unroll]] for (uint i = 0u; i < TM * TN; ++i) sum_[i] = 0;
  for (uint split = 0u; split < SPLITS; ++split) {
    [[unroll]] for (uint i = 0u; i < TM; ++i) {
      const uint m = min(row_of(first_m, i), params.channels - 1u);
      [[unroll]] for (uint j = 0u; j < TN; j += 4u) {
        const ivec4 part = ivec4(partial_[part_of(split, m, min(pixel_of(first_n, j), params.pixels - 1u))]);
        [[unroll]] for (uint k = 0u; k < 4u; ++k) sum_[i * TN + j + k] += part[k];
      }
    }
  }
}

void main() {
  uint rest = group();
  const uint first_m = take(rest, params.row_blocks) * BM, first_n = take(rest, params.column_blocks) * BN;
  if (rest >= SPLITS) return;  // the whole workgroup
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) find_pixel(r, first_n + (lane() + r * LANES) / 4u);
  [[unroll]] for (uint i = 0u; i < TM * TN; ++i) sum_[i] = 0;
  const uint end = (rest + 1u) * CHUNKS / SPLITS;
  uint chunk = rest * CHUNKS / SPLITS;
  load_chunk(chunk, first_m);
  for (; chunk < end; ++chunk) {
    store_chunk();
    barrier();
    load_chunk(min(chunk + 1u, end - 1u), first_m);  // the last one twice, so that there is no branch
    multiply_chunk();
    barrier();
  }
  if (SPLITS > 1u) {
    store_split(first_m, first_n, rest);
    if (!LAST_ADDS || !is_last(group() - rest * params.row_blocks * params.column_blocks)) return;
    add_splits(first_m, first_n);
  }
  store_outputs(first_m, first_n);
}
