// SPDX-License-Identifier: Apache-2.0
// An fp32 convolution of many pixels by cooperative matrices whose elements are in the lanes that vulkan/probe.h expects: the sums of
// conv/fragments.glslh, SPLIT, where a workgroup has many pixels. x is split once for all of its channels, in shared memory; weights,
// packed as there, go from memory to registers to the products.
//
// A workgroup has ROWS * PANELS * 16 output channels and BLOCKS * 8 pixels, a subgroup PANELS * 16 of the channels. A chunk is 32
// columns of the pixels: the next one is on its way to registers while one is multiplied, and is then split to the other of two
// buffers, so that a chunk takes one barrier. SLOTS groups of ROWS subgroups take a part of the chunks each. A pixel's chunk has a
// power of two of its own, so the products of a chunk are summed by themselves and then added to totals in fp32.
//
// Rounding: as conv/fragments.glslh, with chunks in place of tiles of 64 columns.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma variant OUT nchw channels_last
#define DTYPE f32
#define DTYPE_f32 1
#define SPLIT
#define SUM float
#define SUM4 vec4
#define BITS(sums) floatBitsToUint(sums)
#define END_BINDING 4
#include "conv/epilogue.glslh"

layout(set = 0, binding = 1) readonly buffer X { uvec4 x_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { uvec4 weight_[]; };
layout(set = 0, binding = 3) readonly buffer Factors { WORD(DTYPE) factors_[]; };  // any buffer when there are none

layout(constant_id = 6) const uint ROWS = 2u;           // subgroups along the channels
layout(constant_id = 7) const uint BLOCKS = 8u;         // of 8 pixels, a multiple of ROWS
layout(constant_id = 8) const uint SLOTS = 1u;          // which divides the chunks
layout(constant_id = 9) const uint PIXEL_VECTORS = 1u;  // of an input pixel
layout(constant_id = 10) const uint KERNEL_W = 1u;
layout(constant_id = 11) const uint PATCH_VECTORS = 1u;   // of a patch
layout(constant_id = 12) const uint PADDED = 1u;          // there is padding
layout(constant_id = 13) const bool SAME_PIXELS = false;  // conv/load_patches.glslh
layout(constant_id = 14) const bool READS_NCHW = false;   // conv/load_nchw.glslh
layout(constant_id = 15) const bool HAS_FACTORS = false;
layout(constant_id = 16) const uint PANELS = 2u;  // of 16 channels, of a subgroup

#define X_LOADS (BLOCKS / ROWS)  // vectors of eight channels of an invocation: of one pixel in each
#include "conv/load_nchw.glslh"
#include "linear/fragments.glslh"
#include "math/split_16.glslh"

#define CHUNKS ((PATCH_VECTORS + 3u) / 4u)
#define TILES ((PATCH_VECTORS + 7u) / 8u)  // of the packed weight: two chunks
#define BM (ROWS * PANELS * 16u)
#define BN (BLOCKS * 8u)
#define BUFFERS (2u * SLOTS)

// Chunks of x: [slot][buffer][block][high, low][pixel][vector], so that a lane reads what one with its number has written. Then
// the sums, rows of which have padding, so that stores of a subgroup do not meet in a bank.
#if defined(OUT_channels_last)
#define PITCH (BM + 4u)  // [pixel][channel]
#define STAGE (BN * PITCH / 4u)
#else
#define PITCH (BN + 8u)  // [channel][pixel]
#define STAGE (BM * PITCH / 4u)
#endif
#define X_WORDS (BUFFERS * BLOCKS * 64u)
shared uvec4 shared_[X_WORDS > STAGE ? X_WORDS : STAGE];
shared vec2 downs_[BUFFERS * BLOCKS * 4u];  // of two pixels each; the sums' unit is in it

uvec4 w_next_[PANELS * 4u];  // [panel][step][high, low]
W_MATRIX w_[PANELS * 4u];      // of the chunk that is multiplied
float total_[PANELS * BLOCKS * 4u];

void load_chunk(uint first_panel, uint chunk, uint l) {
  if (READS_NCHW) {
    load_nchw(chunk, 0u);
  } else {
    load_patches(chunk, 0u);
  }
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    const uint panel = min(first_panel + j, (params.channels - 1u) / 16u);
    [[unroll]] for (uint v = 0u; v < 4u; ++v) {
      w_next_[j * 4u + v] = weight_[((panel * 2u * TILES + chunk) * 4u + v) * 32u + l];
    }
  }
}

// buffer_: of all slots.
uint block_at(uint buffer_, uint block) { return (buffer_ * BLOCKS + block) * 64u; }

void share(uint at, uvec2 high[2], uvec2 low[2]) {
  shared_[at] = uvec4(high[0], high[1]);
  shared_[at + 32u] = uvec4(low[0], low[1]);
}

// Four lanes have the 32 columns of a pixel, and subgroup `row` of a slot has blocks row, row + ROWS, ...
void split_chunk(uint buffer_, uint row, uint l) {
  vec4 x[2u * X_LOADS];
  uint most[X_LOADS], least[X_LOADS];
  int size[X_LOADS];
  float power[X_LOADS];
  bool finite = true, normal = true;
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    most[r] = 0u;
    least[r] = ~0u;
    [[unroll]] for (uint i = 0u; i < 2u; ++i) {
      x[2u * r + i] = uintBitsToFloat(loaded_part(r, i));
      note(x[2u * r + i], most[r], least[r]);
    }
    size[r] = int(most[r]);
    finite = finite && most[r] < kInfBits;
  }
  if (!finite) {
    [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) size[r] = max(largest_size(x[2u * r]), largest_size(x[2u * r + 1u]));
  }
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    size[r] = max(size[r], subgroupShuffleXor(size[r], 1u));
    size[r] = max(size[r], subgroupShuffleXor(size[r], 2u));
    const int up = min(row_power(size[r]), 112);  // so that 2^(-14 - up) is a normal number
    power[r] = power_of_2(up);
    normal = normal && all_normal(most[r], least[r], up);
    const uint pixel = (buffer_ * BLOCKS + row + r * ROWS) * 8u + (l >> 2);
    if ((l & 3u) == 0u) downs_[pixel >> 1][pixel & 1u] = power_of_2(-14 - up);
  }
  uvec2 high[2], low[2];
  if (normal) {
    [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
      [[unroll]] for (uint i = 0u; i < 2u; ++i) split_normal(x[2u * r + i], power[r], high[i], low[i]);
      share(block_at(buffer_, row + r * ROWS) + l, high, low);
    }
  } else {
    // In a loop, as they are rare and the code is long.
    [[dont_unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
      split_four(x[0], power[0], finite, high[0], low[0]);
      split_four(x[1], power[0], finite, high[1], low[1]);
      share(block_at(buffer_, row + r * ROWS) + l, high, low);
      [[unroll]] for (uint k = 1u; k < X_LOADS; ++k) {
        x[2u * k - 2u] = x[2u * k];
        x[2u * k - 1u] = x[2u * k + 1u];
        power[k - 1u] = power[k];
      }
    }
  }
}

void multiply_chunk(uint buffer_, uint l) {
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    const uvec4 high = shared_[block_at(buffer_, b) + l], low = shared_[block_at(buffer_, b) + 32u + l];
    const vec2 down = downs_[(buffer_ * BLOCKS + b) * 4u + (l & 3u)];
    [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
      SUM_MATRIX sum = SUM_MATRIX(0.0), less = SUM_MATRIX(0.0);
      [[unroll]] for (uint s = 0u; s < 2u; ++s) {
        const X_MATRIX x = x_matrix(s == 0u ? high.xy : high.zw);
        sum = coopMatMulAdd(w_[j * 4u + 2u * s], x, sum);
        less = coopMatMulAdd(w_[j * 4u + 2u * s + 1u], x, less);
        less = coopMatMulAdd(w_[j * 4u + 2u * s], x_matrix(s == 0u ? low.xy : low.zw), less);
      }
      [[unroll]] for (uint e = 0u; e < 4u; ++e) {
        const uint i = (j * BLOCKS + b) * 4u + e;
        total_[i] = fma(fma(less[e], LOW_UNIT, sum[e]), down[e & 1u], total_[i]);
      }
    }
  }
}

uint word_of(uint channel, uint pixel) {
#if defined(OUT_channels_last)
  return pixel * PITCH + channel;
#else
  return channel * PITCH + pixel;
#endif
}

// Slots add to what those before them left.
void stage_sums(uint slot, uint row, uint l) {
  [[dont_unroll]] for (uint each = 0u; each < SLOTS; ++each) {
    if (slot == each) {
      [[unroll]] for (uint i = 0u; i < PANELS * BLOCKS * 4u; ++i) {
        const uint e = i & 3u, block = (i >> 2) % BLOCKS, panel = (i >> 2) / BLOCKS;
        const uint channel = (row * PANELS + panel) * 16u + (l >> 2) + (e >> 1) * 8u, pixel = block * 8u + (l & 3u) * 2u + (e & 1u);
        const uint at = word_of(channel, pixel);
        const float before = each == 0u ? 0.0 : uintBitsToFloat(shared_[at >> 2][at & 3u]);
        shared_[at >> 2][at & 3u] = floatBitsToUint(total_[i] + before);
      }
    }
    barrier();
  }
}

#if defined(OUT_channels_last)
#define AT_ONCE 4u  // words that an invocation stores, so that it waits for what is added once
#define WORDS (BM * BN / 4u)

// An invocation has the same four channels of several pixels.
void store_sums(uint first_row, uint first_n) {
  const uint four = lane() % (BM / 4u), row = first_row + four * 4u;
  if (row >= params.channels) return;
  const Channels channels = channels_from(row);
  [[dont_unroll]] for (uint i = lane(); i < WORDS; i += AT_ONCE * LANES) {
    WORD(DTYPE) other[AT_ONCE];
    [[unroll]] for (uint k = 0u; k < AT_ONCE; ++k) {
      const uint n = min(first_n + (i + k * LANES) / (BM / 4u), params.pixels - 1u);
      if (HAS_OTHER != 0u) other[k] = other_[n * (params.channels >> 2) + (row >> 2)];
    }
    [[unroll]] for (uint k = 0u; k < AT_ONCE; ++k) {
      const uint pixel = (i + k * LANES) / (BM / 4u), n = first_n + pixel;
      if (pixel >= BN || n >= params.pixels) continue;
      store_word(channels, n * (params.channels >> 2) + (row >> 2), shared_[pixel * (PITCH / 4u) + four], other[k]);
    }
  }
}
#else
#define STAGED_CHANNELS BM
#define STAGED_PIXELS BN
SUM staged(uint channel, uint pixel) {
  const uint at = word_of(channel, pixel);
  return uintBitsToFloat(shared_[at >> 2][at & 3u]);
}
#include "conv/store_stage.glslh"

void store_sums(uint first_row, uint first_n) { store_stage(first_row, first_n); }
#endif

void main() {
  uint rest = group();
  const uint row_block = take(rest, params.row_blocks), first_n = rest * BN;
  if (rest >= params.column_blocks) return;  // the whole workgroup
  const uint l = lane() & 31u, row = (lane() >> 5) % ROWS, slot = (lane() >> 5) / ROWS;
  const uint panel = (row_block * ROWS + row) * PANELS;
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint n = first_n + (row + r * ROWS) * 8u + (l >> 2);
    if (READS_NCHW) {
      find_nchw_pixel(r, n);
    } else {
      find_pixel(r, n);
    }
  }
  [[unroll]] for (uint i = 0u; i < PANELS * BLOCKS * 4u; ++i) total_[i] = 0.0;
  const uint first = slot * (CHUNKS / SLOTS), end = first + CHUNKS / SLOTS;
  load_chunk(panel, first, l);
  uint buffer_ = 2u * slot;
  [[dont_unroll]] for (uint chunk = first; chunk < end; ++chunk) {
    split_chunk(buffer_, row, l);
    [[unroll]] for (uint i = 0u; i < PANELS * 4u; ++i) w_[i] = w_matrix(w_next_[i]);
    barrier();
    load_chunk(panel, min(chunk + 1u, end - 1u), l);  // the last one twice, so that there is no branch before loads
    multiply_chunk(buffer_, l);
    buffer_ ^= 1u;
  }
  barrier();
  stage_sums(slot, row, l);
  store_sums(row_block * BM, first_n);
}
