// SPDX-License-Identifier: Apache-2.0
// x . w^T for few rows of x (the formula is in linear/linear.glslh) on a device that computes a subgroup's lanes as one SIMD vector
// and reads memory lane by lane (a CPU). A lane owns two whole weight rows of a row panel: all lanes need the same x, which is then
// read once, and no sums are exchanged at the end. A workgroup of 8 lanes has PANELS row panels of 16 weight rows and ROWS rows of x.
// A single row may be the result of a norm, which the workgroup then computes first. A GATED product has two row panels, a gate and
// what it is multiplied with (linear/epilogue.glslh).
//
// Rounding: fp32; a lane adds the products of a group (or 32 columns) in order, then times the scale to the row's sum.
// |err| <= 2^-24 * (K / 32 + 32 + 20) * sum|x w| before the result is rounded to the output's type.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual; WEIGHT q4, q8: 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma variant WEIGHT q4 q8 f16 f32
#pragma variant X bound address
// Weights that are not quantized have x's dtype.
#pragma without DTYPE=f32 WEIGHT=f16
#pragma without DTYPE=f16 WEIGHT=f32
#define X_ADDRESS
#if defined(X_address)
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#endif
#include "linear/linear.glslh"
#include "math/math.glslh"

layout(constant_id = 10) const uint ROWS = 1u;
layout(constant_id = 11) const uint PANELS = 1u;
layout(constant_id = 12) const uint NORM = 0u;  // vec4 groups of a row in whole tiles, where it is normed, else 0
layout(constant_id = 13) const bool GATED = false;

shared float result_[PANELS * ROWS * 16u];
shared float squares_[8];
shared WORD(DTYPE) row_[NORM != 0u ? NORM : 1u];
uint x_first_[ROWS];  // elements of x before the row
vec2 sum_[ROWS];      // of weight rows g and g + 8
vec2 part_[ROWS];     // of the group at hand, not scaled yet

// A lane stores the columns whose sums it has: no barrier, and no memory between. An element of fp16 shares a word with another
// lane's; a gated product takes two row panels.
#if defined(DTYPE_f32)
#define OWN_COLUMNS (!GATED)
#else
#define OWN_COLUMNS false
#endif

#ifdef QUANTIZED
#define ONE_SCALE_A_HALF (GROUP % 32u == 0u)
#else
#define ONE_SCALE_A_HALF true
#endif

float multiply_add(float sum, vec4 a, vec4 b) { return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum)))); }

void add_parts(vec2 scale) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    sum_[r] = fma(part_[r], scale, sum_[r]);
    part_[r] = vec2(0.0);
  }
}

// row[k] = x[k] * rsqrt(mean(x^2) + eps) * weight[k] of the only row, rounded as glsl/norm.glsl rounds it; then zeros.
void norm_row() {
  const uint count = K / 4u;
  float squares = 0.0;
  for (uint q = lane(); q < count; q += LANES) {
    const vec4 v = LOAD4(DTYPE, x_, q);
    squares += dot(v, v);
  }
  squares_[lane()] = squares;
  barrier();
  squares = 0.0;
  for (uint i = 0u; i < LANES; ++i) squares += squares_[i];
  const float scale = safe_rsqrt(squares / float(K) + params.eps);
  for (uint q = lane(); q < NORM; q += LANES) {
    const uint at = min(q, count - 1u);
    const vec4 v = LOAD4(DTYPE, x_, at) * scale * LOAD4(DTYPE, residual_, at);  // a product with a norm takes no residual
    row_[q] = q < count ? PACK(DTYPE, v) : WORD(DTYPE)(0);
  }
  barrier();
}

// Columns k + 4 * i .. k + 4 * i + 3 of row r of the workgroup, k a multiple of 32.
WORD(DTYPE) x_word(uint r, uint k, uint i) {
  if (NORM != 0u) return row_[(k >> 2) + i];
#if defined(X_address)
  if (WHOLE_ROWS) return x_rows_.at[(x_first_[r] + k) >> 5][i];  // i is a constant: a part of the instruction
#endif
  return load_x_from(x_first_[r], k + 4u * i);
}

// What steps 2 * h and 2 * h + 1 of lane l of a tile need, to be unpacked.
void fetch_half(out uvec4 w[LIVE], uint i, uint l, uint h) {
#if defined(WEIGHT_q4)
  const uint at = i * 32u + l;
  w[0] = uvec4(weight_[at][2u * h], weight_[at][2u * h + 1u], 0u, 0u);
#else
  fetch(w, i, l, 2u * h);
#endif
}

// Half a tile: what is unrolled is no more, as a compiler then keeps most of it in registers.
void multiply_half(uint panel, uint tile, uint h) {
  const uint g = lane(), k = tile * 64u + h * 32u;
  vec2 scale = vec2(1.0), zero = vec2(0.0);
#ifdef QUANTIZED
  if (ONE_SCALE_A_HALF) {
    const uint pair = pair_of(panel, g, k);
    scale = load_scale(pair);
    zero = load_zero(pair);
  }
#endif
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) part_[r] = vec2(0.0);
  [[unroll]] for (uint t = 0u; t < 4u; ++t) {
    uvec4 w[LIVE];
    [[unroll]] for (uint j = 0u; j < 2u; ++j) {
#ifdef QUANTIZED
      if (!ONE_SCALE_A_HALF) {
        const uint pair = pair_of(panel, g, k + t * 8u + j * 4u);
        scale = load_scale(pair);
        zero = load_zero(pair);
      }
#endif
      if (j == 0u) fetch_half(w, panel * params.tiles + tile, 4u * g + t, h);
      else if (FETCH_AT(1u)) fetch(w, panel * params.tiles + tile, 4u * g + t, 2u * h + 1u);
      vec4 a, b;
      unpack(w, zero, a, b);
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        const vec4 x = UNPACK(DTYPE, x_word(r, k, 2u * t + j));
        part_[r] = vec2(multiply_add(part_[r].x, x, a), multiply_add(part_[r].y, x, b));
      }
      if (!ONE_SCALE_A_HALF) add_parts(scale);
    }
  }
  if (ONE_SCALE_A_HALF) add_parts(scale);
}

// The sums of a row panel to sum_, and unless OWN_COLUMNS to result_.
void multiply_panel(uint panel, uint at) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) sum_[r] = vec2(0.0);
  for (uint half_ = 0u; half_ < 2u * params.tiles; ++half_) multiply_half(panel, half_ >> 1, half_ & 1u);
  if (OWN_COLUMNS) return;
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    result_[(at + r) * 16u + lane()] = sum_[r].x;
    result_[(at + r) * 16u + lane() + 8u] = sum_[r].y;
  }
}

vec4 result_of(uint at) { return vec4(result_[at], result_[at + 1u], result_[at + 2u], result_[at + 3u]); }

#if defined(DTYPE_f32)
// Stores the sums of a row panel.
void store_sums(uint panel, uint first_row) {
  [[unroll]] for (uint c = 0u; c < 2u; ++c) {
    const uint n = panel * 16u + lane() + 8u * c;
    if (n < params.n) {
      const float bias = bias_of(n);
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)
        if (first_row + r < params.m) store_element(first_row + r, n, sum_[r][c], bias);
    }
  }
}
#endif

void main() {
  const uint block = group() / params.row_blocks, first_row = (group() - block * params.row_blocks) * ROWS;
  const uint panel = block * PANELS;
  if (panel * 16u >= params.n) return;  // the whole workgroup
  // Before any loop: what a loop computes, even the same each time, a CPU driver keeps for each lane.
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) x_first_[r] = min(first_row + r, params.m - 1u) * K;
#if defined(X_address)
  x_rows_ = XRows(uvec2(params.x_address[0], params.x_address[1]));
#endif
  if (NORM != 0u) norm_row();
  for (uint j = 0u; j < PANELS; ++j) {
    if ((panel + j) * 16u >= params.n) continue;
    multiply_panel(panel + j, j * ROWS);
#if defined(DTYPE_f32)
    if (OWN_COLUMNS) store_sums(panel + j, first_row);
#endif
  }
  if (OWN_COLUMNS) return;
  barrier();
  for (uint i = lane(); i < (GATED ? 1u : PANELS) * ROWS * 4u; i += LANES) {
    const uint j = i / (ROWS * 4u), row = first_row + (i >> 2) % ROWS, n = (panel + j) * 16u + (i & 3u) * 4u;
    if (row >= params.m || n >= params.n) continue;
    if (GATED) store_gated(row, n, result_of(i * 4u), result_of((i + ROWS * 4u) * 4u));
    else store_vec4(row, n, result_of(i * 4u));
  }
}
