// SPDX-License-Identifier: Apache-2.0
// matmul (the formula is in matmul.glsl) by cooperative matrices of any shape. Rows of a, and columns of b, come with their k in
// order, eight fp16 in a uvec4: as they are, or made by matmul_rows.glsl. They are copied to shared memory in chunks of 32 k while
// the next chunk is loaded into registers. A workgroup computes BM x BN outputs, a subgroup WM x WN.
//   X halves  operands and the output are fp16. Products are exact, sums fp32:
//             |err| <= 2^-23 * (K + 2) * sum|a b|
//   X split   they are fp32, which come as two fp16 for each element; the product of two low parts is left out. With 2^-22 of a, of
//             b and of what is left out:
//             |err| <= (2^-20 + 2^-23 * (K + 2)) * sum|a b| + 2^-49 * (max|a| * sum|b| + sum|a| * max|b|)
// Bindings: 0 out, 1 a, 2 b, 3 bias; split: 4 scales of rows of a, 5 scales of columns of b.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma variant X halves split
#include "linear/operand_parts.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer A { uvec4 a_[]; };
layout(set = 0, binding = 2) readonly buffer B { uvec4 b_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(DTYPE) bias_[]; };  // any buffer when there is none
#if defined(X_split)
layout(set = 0, binding = 4) readonly buffer AScales { float a_scale_[]; };
layout(set = 0, binding = 5) readonly buffer BScales { float b_scale_[]; };
#endif

layout(push_constant) uniform Params {
  uint m;
  uint n;
  uint groups;  // uvec4 of a part of a row
  uint batches;
  uint row_blocks;
  uint column_blocks;
  uint a_row;  // strides, in uvec4
  uint b_column;
  uint size[4];     // of the batch dimensions, padded in front with 1
  uint a_batch[4];  // their strides
  uint b_batch[4];
} params;

layout(constant_id = 1) const uint HAS_BIAS = 0u;
layout(constant_id = 2) const uint N_VEC4 = 0u;
layout(constant_id = 3) const uint ACT = 0u;
layout(constant_id = 4) const uint BM = 64u;
layout(constant_id = 5) const uint BN = 64u;
layout(constant_id = 6) const uint WM = 32u;
layout(constant_id = 7) const uint WN = 32u;
layout(constant_id = 8) const uint TM = 16u;
layout(constant_id = 9) const uint TN = 16u;
layout(constant_id = 10) const uint TK = 16u;
layout(constant_id = 11) const uint SHARED = 1024u;  // uvec4 of shared memory

#define OUT_COLUMNS params.n
#include "linear/epilogue.glslh"

#define MATRICES_M (WM / TM)
#define MATRICES_N (WN / TN)
#define SUBGROUPS_N (BN / WN)
#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define ROW 5u  // uvec4 of a row in shared memory: 32 fp16 and 8 of padding, so that eight rows lie in different banks
#define B_ROWS (PARTS * BM)       // the first shared row of b
#define A_LOADS (BM * 4u / LANES)  // of a part
#define B_LOADS (BN * 4u / LANES)

shared uvec4 shared_[SHARED];
C_MATRIX sum_[MATRICES_M * MATRICES_N];
uvec4 a_next_[PARTS * A_LOADS], b_next_[PARTS * B_LOADS];

// The row of a tile that load r of a part has; its group in the chunk is lane % 4. Eight neighbours store to eight different banks.
uint tile_row(uint r) {
  const uint e = lane();
  return (e >> 5) * 8u + ((e >> 2) & 1u) * 4u + ((e >> 3) & 3u) + r * (LANES / 4u);
}

// Rows past the end are the last one, whose results are not stored; groups past the end are zeros.
void load_chunk(uint chunk, uvec2 first, uint m, uint n) {
  const uint at = chunk * 4u + (lane() & 3u), group_of = min(at, params.groups - 1u);
  const uvec4 none = uvec4(0u);
  [[unroll]] for (uint r = 0u; r < PARTS * A_LOADS; ++r) {
    const uint row = min(m + tile_row(r % A_LOADS), params.m - 1u);
    const uvec4 a = a_[first.x + row * params.a_row + r / A_LOADS * params.groups + group_of];
    a_next_[r] = at < params.groups ? a : none;
  }
  [[unroll]] for (uint r = 0u; r < PARTS * B_LOADS; ++r) {
    const uint column = min(n + tile_row(r % B_LOADS), params.n - 1u);
    const uvec4 b = b_[first.y + column * params.b_column + r / B_LOADS * params.groups + group_of];
    b_next_[r] = at < params.groups ? b : none;
  }
}

void store_chunk() {
  [[unroll]] for (uint r = 0u; r < PARTS * A_LOADS; ++r) {
    shared_[(r / A_LOADS * BM + tile_row(r % A_LOADS)) * ROW + (lane() & 3u)] = a_next_[r];
  }
  [[unroll]] for (uint r = 0u; r < PARTS * B_LOADS; ++r) {
    shared_[(B_ROWS + r / B_LOADS * BN + tile_row(r % B_LOADS)) * ROW + (lane() & 3u)] = b_next_[r];
  }
}

#if defined(X_split)
#define WEIGHT_f32 1  // b comes in two parts
#define GROUP 0u
void load_powers() {}
#include "linear/split_sums.glslh"
#else
#include "linear/halves_sums.glslh"
#endif

#define PITCH (WN / 4u + 2u)  // uvec4 of a row of sums: eight rows begin in different banks

// Four sums of a row; scales: the first of a and of b in this batch.
vec4 value_of(uint place, uint row, uint column, uvec2 scales) {
  const vec4 v = uintBitsToFloat(shared_[place]);
#if defined(X_split)
  const vec4 a = vec4(a_scale_[scales.x + row]);
  vec4 b;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) b[i] = b_scale_[scales.y + min(column + i, params.n - 1u)];
  return v * min(a, b) * max(a, b);  // the smaller first, so that no product of a number that fits is too large in between
#else
  return v;
#endif
}

// Through shared memory, TM rows of a subgroup at a time; no invocation reads the tiles any more.
void store_sums(uint batch, uint first_m, uint first_n, uvec2 scales) {
  const uint stage = gl_SubgroupID * TM * PITCH;
  const uint m = first_m + gl_SubgroupID / SUBGROUPS_N * WM, n = first_n + gl_SubgroupID % SUBGROUPS_N * WN;
  [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
    [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
      coopMatStore(sum_[i * MATRICES_N + j], shared_, stage + j * TN / 4u, PITCH, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint q = gl_SubgroupInvocationID; q < TM * WN / 4u; q += gl_SubgroupSize) {
      const uint within = q / (WN / 4u), row = m + i * TM + within, column = n + q % (WN / 4u) * 4u;
      if (row < params.m && column < params.n) {
        store_vec4(batch * params.m + row, column, value_of(stage + within * PITCH + q % (WN / 4u), row, column, scales));
      }
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  }
}

void main() {
  uint rest = group();
  const uint first_m = take(rest, params.row_blocks) * BM, first_n = take(rest, params.column_blocks) * BN, batch = rest;
  if (batch >= params.batches) return;  // the whole workgroup
  uvec2 first = uvec2(0u);
  for (uint d = 4u; d-- > 0u;) first += take(rest, params.size[d]) * uvec2(params.a_batch[d], params.b_batch[d]);

  [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sum_[i] = C_MATRIX(0.0);
#if defined(X_split)
  begin_split();
#endif
  const uint chunks = (params.groups + 3u) / 4u;
  load_chunk(0u, first, first_m, first_n);
  for (uint chunk = 0u; chunk < chunks; ++chunk) {
    store_chunk();
    barrier();
    load_chunk(min(chunk + 1u, chunks - 1u), first, first_m, first_n);  // the last one twice, so that there is no branch
    multiply_chunk();
    barrier();
  }
#if defined(X_split)
  join_sums();
#endif
  store_sums(batch, first_m, first_n, first / uvec2(params.a_row, params.b_column));
}
