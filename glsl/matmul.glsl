// SPDX-License-Identifier: Apache-2.0
// out[batch, m, n] = act(sum_k a[batch, m, k] * b[batch, k, n] + bias[n]) by linear/gemm.glslh; a workgroup computes BM x BN outputs.
// Both operands are read through strides: permuted and broadcast ones are not copied. Rounding: that of linear/gemm.glslh.
// Bindings: 0 out, 1 a, 2 b, 3 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma choice READ vec4 along_k along_rows
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer A { WORD(DTYPE) a_[]; };
layout(set = 0, binding = 2) readonly buffer B { WORD(DTYPE) b_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(DTYPE) bias_[]; };  // a again when there is none

layout(push_constant) uniform Params {
  uint m;
  uint n;
  uint k;
  uint batches;
  uint row_blocks;
  uint column_blocks;
  uint a_row;  // strides, in elements
  uint a_k;
  uint b_k;
  uint b_column;
  uint size[4];     // of the batch dimensions, padded in front with 1
  uint a_batch[4];  // their strides
  uint b_batch[4];
} params;

// How an operand is read. READ_vec4: four k at once (k has stride 1, all else is a multiple of 4); else one by one, neighbouring
// lanes at neighbouring k (READ_along_k) or at neighbouring rows (READ_along_rows; columns of b).
layout(constant_id = 1) const uint A_READ = READ_vec4;
layout(constant_id = 2) const uint B_READ = READ_vec4;
layout(constant_id = 3) const uint HAS_BIAS = 0u;
layout(constant_id = 4) const uint N_VEC4 = 0u;
layout(constant_id = 5) const uint ACT = 0u;

#define OUT_COLUMNS params.n
#define GEMM_SPEC 6
#define GEMM_STEPS 2u  // as linear_tiled.glsl with fp32 weights
#include "linear/epilogue.glslh"
#include "linear/gemm.glslh"
#include "core/index.glslh"

#define A_LOADS ((BM * 4u + LANES - 1u) / LANES)
#define B_LOADS ((BN * 4u + LANES - 1u) / LANES)
WORD(DTYPE) a_next_[A_LOADS];
WORD(DTYPE) b_next_[B_LOADS];

// The place of load e: .x the row of the tile, .y the vec4 group of the chunk.
uvec2 place(uint e, uint read, uint rows) { return read == READ_along_rows ? uvec2(e % rows, e / rows) : uvec2(e >> 2, e & 3u); }

// Four k of a row, zeros from params.k on.
#define DEFINE_LOAD(NAME, BUF, READ)                                                                       \
  WORD(DTYPE) NAME(uint first, uint stride, uint k) {                                                      \
    if (READ == READ_vec4 && k + 4u <= params.k) return BUF[(first + k) >> 2];                            \
    vec4 v = vec4(0.0);                                                                                    \
    for (uint i = 0u; i < 4u; ++i) {                                                                       \
      if (k + i < params.k) v[i] = LOAD1(DTYPE, BUF, first + (k + i) * stride);                            \
    }                                                                                                      \
    return PACK(DTYPE, v);                                                                                 \
  }
DEFINE_LOAD(load_a, a_, A_READ)
DEFINE_LOAD(load_b, b_, B_READ)

void load_chunk(uint chunk, uvec2 base, uint first_m, uint first_n) {
  [[unroll]] for (uint r = 0u; r < A_LOADS; ++r) {
    const uvec2 at = place(lane() + r * LANES, A_READ, BM);
    a_next_[r] = load_a(base.x + min(first_m + at.x, params.m - 1u) * params.a_row, params.a_k, chunk * 16u + (at.y & 3u) * 4u);
  }
  [[unroll]] for (uint r = 0u; r < B_LOADS; ++r) {
    const uvec2 at = place(lane() + r * LANES, B_READ, BN);
    b_next_[r] = load_b(base.y + min(first_n + at.x, params.n - 1u) * params.b_column, params.b_k, chunk * 16u + (at.y & 3u) * 4u);
  }
}

void store_chunk() {
  [[unroll]] for (uint r = 0u; r < A_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    const uvec2 at = place(e, A_READ, BM);
    if (e < BM * 4u) a_tile_[a_vec4(at.x, at.y)] = UNPACK(DTYPE, a_next_[r]);
  }
  [[unroll]] for (uint r = 0u; r < B_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    const uvec2 at = place(e, B_READ, BN);
    if (e < BN * 4u) b_tile_[b_vec4(at.x, at.y)] = UNPACK(DTYPE, b_next_[r]);
  }
}

void main() {
  uint rest = group();
  const uint first_m = take(rest, params.row_blocks) * BM;
  const uint first_n = take(rest, params.column_blocks) * BN;
  const uint batch = rest;
  if (batch >= params.batches) return;  // the whole workgroup
  uvec2 base = uvec2(0u);
  for (uint d = 4u; d-- > 0u;) {
    const uint at = take(rest, params.size[d]);
    base += at * uvec2(params.a_batch[d], params.b_batch[d]);
  }

  clear_sums();
  load_chunk(0u, base, first_m, first_n);
  const uint chunks = (params.k + 15u) / 16u;
  for (uint chunk = 0u; chunk < chunks; ++chunk) {
    store_chunk();
    barrier();
    if (chunk + 1u < chunks) load_chunk(chunk + 1u, base, first_m, first_n);
    multiply_chunk();
    barrier();
  }

  [[unroll]] for (uint i = 0u; i < TM; ++i) {
    const uint m = first_m + output_row(i);
    if (m < params.m) {
      [[unroll]] for (uint j = 0u; j < TN / 4u; ++j) {
        const uint n = first_n + output_column(j);
        if (n < params.n) store_vec4(batch * params.m + m, n, output_vec4(i, j));
      }
    }
  }
}
