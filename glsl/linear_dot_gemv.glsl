// SPDX-License-Identifier: Apache-2.0
// Integer products for few rows of x (the formula is in linear/linear_int8.glslh): a workgroup reads PANELS row panels of 16 weight
// rows once and multiplies them with ROWS rows of x, four columns an instruction. x is in shared memory in the order of the packed
// words. Slots of 32 lanes take the tiles of a row panel in turn; a lane's sums of two weight rows are added to those of other
// lanes through shared memory.
//
// X  direct     the workgroup quantizes its rows of x itself, after the first weights are requested
//    words      they come from linear_quantize.glsl
//    texture2d  as words, and the weight is in a texture
//
// Rounding: a lane's sum of a group's columns is exact, its product with the scale is added in fp32; LANES / 8 partial sums are
// added in order. Rows with one scale are summed in integers throughout.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero; OUT bytes: out_scale, out_zero; then rows (X direct:
// given scale, given zero), weight sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_integer_dot_product : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#pragma variant OUT f32 f16 bytes
#pragma variant WEIGHT q4 q8
#pragma variant X direct words texture2d
#if defined(X_texture2d)
#define X_words
#define WEIGHT_STORAGE_texture2d
#endif
#define X_PARAMS ROW_SOURCE_PARAMS
#include "linear/linear_int8.glslh"

layout(constant_id = 12) const uint ROWS = 1u;
layout(constant_id = 13) const uint DEPTH = 4u;  // tiles whose weights are prefetched
layout(constant_id = 14) const uint PANELS = 1u;
#if defined(X_direct)
#if defined(OUT_f16)
#define IN f16
#define IN_f16 1
#elif defined(OUT_f32)
#define IN f32
#define IN_f32 1
#else
#define IN i8
#define IN_i8 1
#endif
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
layout(set = 0, binding = ROWS_BINDING + 2) readonly buffer Sums { ivec2 weight_sums_[]; };
#define GIVEN_BINDING ROWS_BINDING
#define SOURCE_SPEC 15
#include "quant/row_source.glslh"
#else
layout(set = 0, binding = 1) readonly buffer X { uvec4 x_[]; };
layout(set = 0, binding = ROWS_BINDING) readonly buffer Rows { uvec4 rows_[]; };
layout(set = 0, binding = ROWS_BINDING + 1) readonly buffer Sums { ivec2 weight_sums_[]; };
#endif

#define SLOTS (LANES / 32u / PANELS)  // of a row panel
#define PARTS (SLOTS * 4u)           // partial sums of a weight row
#define PITCH (PARTS / 4u + 1u)      // uvec4 of a weight row's partial sums: eight rows begin in different banks
#define TURNS ((TILES + SLOTS - 1u) / SLOTS)
#define ONES 0x01010101
shared uvec4 x_words_[ROWS * TILES * 4u];
shared uvec4 sums_[PANELS * ROWS * 16u * PITCH];
shared float row_scale_[ROWS], row_inverse_[ROWS];
shared int row_zero_[ROWS];  // of the signed bytes

#define RUNS (GROUP % 64u == 0u ? 1u : 2u)  // scales a lane needs of a tile
uvec4 prefetched_[DEPTH * VECTORS];
uvec2 prefetched_scale_[DEPTH * RUNS];

// Whether a slot has a tile in a turn: the last turn may have fewer tiles than slots. For the others the compiler knows it.
#define HAS_TURN(slot, turn) ((turn) < TILES / SLOTS || ((turn) < TURNS && (slot) + (turn) * SLOTS < TILES))

// Prefetches what a lane needs of a tile; past the last tile, the last again.
void prefetch(uint d, uint panel, uint tile) {
  const uint l = lane() & 31u, at = TILES % SLOTS == 0u ? tile : min(tile, TILES - 1u), base = (panel * TILES + at) * VECTORS * 32u + l;
  [[unroll]] for (uint v = 0u; v < VECTORS; ++v) prefetched_[d * VECTORS + v] = WEIGHT_AT(base + v * 32u);
  if (GROUP != 0u) {
    [[unroll]] for (uint run = 0u; run < RUNS; ++run) {
      prefetched_scale_[d * RUNS + run] = scale_words(pair_of(panel, l >> 2, at * 64u + run * 32u + (l & 3u) * 8u));
    }
  }
}

int whole_a_[ROWS], whole_b_[ROWS];  // of rows with one scale
float sum_a_[ROWS], sum_b_[ROWS];    // of others

void multiply_tile(uint d, uint panel, uint tile, uint next, bool more, int row_zero[ROWS]) {
  uvec4 w[VECTORS];
  uvec2 scales[RUNS];
  [[unroll]] for (uint v = 0u; v < VECTORS; ++v) w[v] = prefetched_[d * VECTORS + v];
  [[unroll]] for (uint run = 0u; run < RUNS; ++run) scales[run] = prefetched_scale_[d * RUNS + run];
  if (more) prefetch(d, panel, next);
  const uint l = lane() & 31u;
  uvec4 x[ROWS];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) x[r] = x_words_[(r * TILES + tile) * 4u + (l & 3u)];
  [[unroll]] for (uint run = 0u; run < RUNS; ++run) {
    int dot_a[ROWS], dot_b[ROWS], x_sum[ROWS], ones_a = 0, ones_b = 0;
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) dot_a[r] = dot_b[r] = x_sum[r] = 0;
    [[unroll]] for (uint step_ = 0u; step_ < 4u / RUNS; ++step_) {
      const uint s = run * 2u + step_;
      const ivec2 bytes = signed_bytes(w[s * VECTORS / 4u], s);
      if (HAS_ROW_ZERO != 0u && GROUP != 0u) {
        ones_a += dotPacked4x8EXT(bytes.x, ONES);
        ones_b += dotPacked4x8EXT(bytes.y, ONES);
      }
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        dot_a[r] += dotPacked4x8EXT(bytes.x, int(x[r][s]));
        dot_b[r] += dotPacked4x8EXT(bytes.y, int(x[r][s]));
        if (HAS_ZERO != 0u) x_sum[r] += dotPacked4x8EXT(int(x[r][s]), ONES);
      }
    }
    ivec2 zero = ivec2(0);
    if (HAS_ZERO != 0u) zero = whole_zero(pair_of(panel, l >> 2, tile * 64u + run * 32u + (l & 3u) * 8u));
    const vec2 scale = scale_of(scales[run]);
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      if (HAS_ROW_ZERO != 0u) {
        if (GROUP != 0u) {
          dot_a[r] -= row_zero[r] * ones_a;
          dot_b[r] -= row_zero[r] * ones_b;
        }
        x_sum[r] -= row_zero[r] * int(16u / RUNS);
      }
      if (HAS_ZERO != 0u) {
        dot_a[r] -= zero.x * x_sum[r];
        dot_b[r] -= zero.y * x_sum[r];
      }
      if (GROUP == 0u) {
        whole_a_[r] += dot_a[r];
        whole_b_[r] += dot_b[r];
      } else {
        sum_a_[r] = fma(float(dot_a[r]), scale.x, sum_a_[r]);
        sum_b_[r] = fma(float(dot_b[r]), scale.y, sum_b_[r]);
      }
    }
  }
}

#include "linear/load_rows.glslh"

void put_sum(uint row, uint part, uint word) { sums_[row * PITCH + (part >> 2)][part & 3u] = word; }

void main() {
  const uint block = group() / params.row_blocks, first_row = (group() - block * params.row_blocks) * ROWS;
  const uint first_panel = block * PANELS;
  if (first_panel * 16u >= params.n) return;  // the whole workgroup
  const uint l = lane() & 31u, which = PANELS == 1u ? 0u : (lane() >> 5) / SLOTS, slot = (lane() >> 5) - which * SLOTS;
  const uint panel = PANELS == 1u ? first_panel : min(first_panel + which, (params.n - 1u) / 16u);

  // One tile, for the fewest registers: not while x is quantized.
  if (DEPTH > 1u) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      if (d < TURNS) prefetch(d, panel, slot + d * SLOTS);
    }
  }
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    whole_a_[r] = whole_b_[r] = 0;
    sum_a_[r] = sum_b_[r] = 0.0;
  }
#if !defined(X_words)
  hold_row(first_row);
#endif
  load_rows(first_row);
  if (DEPTH == 1u) prefetch(0u, panel, slot);
  int row_zero[ROWS];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) row_zero[r] = row_zero_[r];
  for (uint turn = 0u; turn < TURNS; turn += DEPTH) {
    [[unroll]] for (uint d = 0u; d < DEPTH; ++d) {
      const uint now = turn + d, next = now + DEPTH;
      if (HAS_TURN(slot, now)) multiply_tile(d, panel, slot + now * SLOTS, slot + next * SLOTS, HAS_TURN(slot, next), row_zero);
    }
  }

  const uint part = slot * 4u + (l & 3u), g = l >> 2;
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    put_sum((which * ROWS + r) * 16u + g, part, GROUP == 0u ? uint(whole_a_[r]) : floatBitsToUint(sum_a_[r]));
    put_sum((which * ROWS + r) * 16u + g + 8u, part, GROUP == 0u ? uint(whole_b_[r]) : floatBitsToUint(sum_b_[r]));
  }
  barrier();
  for (uint i = lane(); i < PANELS * ROWS * 16u; i += LANES) {
    const uint row = (i >> 4) % ROWS, pair = min(first_panel + (i >> 4) / ROWS, (params.n - 1u) / 16u) * 8u + (i & 7u);
    float sum = 0.0;
    if (GROUP == 0u) {
      int whole = 0;
      for (uint p = 0u; p < PARTS / 4u; ++p) {
        const ivec4 four = ivec4(sums_[i * PITCH + p]);
        whole += four.x + four.y + four.z + four.w;
      }
      const ivec2 weight_sum = weight_sums_[pair];
      if (HAS_ROW_ZERO != 0u) whole -= row_zero_[row] * UNIT * ((i & 8u) != 0u ? weight_sum.y : weight_sum.x);
      const vec2 scale = load_scale(pair);
      sum = float(whole) * ((i & 8u) != 0u ? scale.y : scale.x);
    } else {
      for (uint p = 0u; p < PARTS / 4u; ++p) {
        const vec4 four = uintBitsToFloat(sums_[i * PITCH + p]);
        sum += four.x + four.y + four.z + four.w;
      }
    }
    sums_[i * PITCH].x = floatBitsToUint(sum * (row_scale_[row] / float(UNIT)));  // no other invocation reads it
  }
  barrier();
  for (uint i = lane(); i < PANELS * ROWS * 4u; i += LANES) {
    const uint row = first_row + (i >> 2) % ROWS, n = (first_panel + (i >> 2) / ROWS) * 16u + (i & 3u) * 4u, base = i * 4u * PITCH;
    const uvec4 four = uvec4(sums_[base].x, sums_[base + PITCH].x, sums_[base + 2u * PITCH].x, sums_[base + 3u * PITCH].x);
    if (row < params.m && n < params.n) store_real(row, n, uintBitsToFloat(four));
  }
}
