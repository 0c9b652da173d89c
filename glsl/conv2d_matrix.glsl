// SPDX-License-Identifier: Apache-2.0
// 2D convolution of fp16 for many output channels of a group, by cooperative matrices of any shape: the packed weight and the
// patches of x (conv.glslh) meet in shared memory in chunks of 32 columns (half a tile of packed.glslh). Rows are output
// channels, columns output pixels, as in conv_tiled.glslh. A workgroup computes BM x BN outputs, a subgroup WM x WN of them.
// Rounding: products are exact, sums fp32: |err| <= 2^-23 * K * sum|x w|.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#define DTYPE f16
#define DTYPE_f16 1
#define WEIGHT_f16
#define IN DTYPE
#include "activation.glslh"
#include "launch.glslh"
#include "modes.glslh"
#include "types.glslh"
#include "weight.glslh"

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
WEIGHT_BINDING(2)
layout(set = 0, binding = 3) readonly buffer Bias { WORD(DTYPE) bias_[]; };  // x again when there is none

#define CONV_SPEC 5
layout(constant_id = 1) const uint HAS_BIAS = 0u;
layout(constant_id = 2) const uint HAS_ZERO = 0u;  // of the other kernels
layout(constant_id = 3) const uint N_QUADS = 0u;   // an image has a multiple of 4 pixels
layout(constant_id = 4) const uint ACT = 0u;
layout(constant_id = 9) const uint BM = 64u;
layout(constant_id = 10) const uint BN = 64u;
layout(constant_id = 11) const uint WM = 32u;
layout(constant_id = 12) const uint WN = 32u;
layout(constant_id = 13) const uint TM = 16u;
layout(constant_id = 14) const uint TN = 16u;
layout(constant_id = 15) const uint TK = 16u;
layout(constant_id = 16) const uint SHARED = 1024u;  // uvec4 of shared memory

layout(push_constant) uniform Params {
  CONV_PARAMS
  uint tiles;       // of a strip of the packed weight
  uint row_blocks;  // tiles along the output channels of a group
} params;
#include "conv_rows.glslh"

#define ROW 5u  // uvec4 of a row in shared memory: 32 halves and 8 of padding, so that eight rows lie in different banks
#define X_LOADS (BN * 4u / LANES)
#define W_LOADS (BM * 2u / LANES)  // lanes of packed strips
#define MATRICES_M (WM / TM)
#define MATRICES_N (WN / TN)
#define SUBGROUPS_N (BN / WN)
#define C_MATRIX coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

shared uvec4 shared_[SHARED];
C_MATRIX sum_[MATRICES_M * MATRICES_N];
uvec4 x_next_[X_LOADS], w_next_[W_LOADS * 2u];
uvec3 pixel_[X_LOADS];

void load_chunk(Block block, uint half_tile) {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint k = half_tile * 32u + (lane() + r * LANES) / BN * 8u;
    x_next_[r] = uvec4(pack_f16(load_patch(pixel_[r], k)), pack_f16(load_patch(pixel_[r], k + 4u)));
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, tile = strip_at(block.first_m, e >> 5) * params.tiles + (half_tile >> 1);
    const uint base = tile * 128u + (half_tile & 1u) * 64u + (e & 31u);
    w_next_[2u * r] = weight_[base];
    w_next_[2u * r + 1u] = weight_[base + 32u];
  }
}

void store_chunk() {
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    const uint e = lane() + r * LANES;
    shared_[(BM + e % BN) * ROW + e / BN] = x_next_[r];
  }
  [[unroll]] for (uint r = 0u; r < W_LOADS; ++r) {
    const uint e = lane() + r * LANES, row = (e >> 5) * 16u + ((e & 31u) >> 2);
    shared_[row * ROW + (e & 3u)] = uvec4(w_next_[2u * r].xy, w_next_[2u * r + 1u].xy);
    shared_[(row + 8u) * ROW + (e & 3u)] = uvec4(w_next_[2u * r].zw, w_next_[2u * r + 1u].zw);
  }
}

void multiply_chunk() {
  const uint a_row = gl_SubgroupID / SUBGROUPS_N * WM, b_row = BM + gl_SubgroupID % SUBGROUPS_N * WN;
  [[unroll]] for (uint k = 0u; k < 32u / TK; ++k) {
    coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a[MATRICES_M];
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      coopMatLoad(a[i], shared_, (a_row + i * TM) * ROW + k * TK / 8u, ROW, gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
      coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> b;
      coopMatLoad(b, shared_, (b_row + j * TN) * ROW + k * TK / 8u, ROW, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
        sum_[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sum_[i * MATRICES_N + j]);
      }
    }
  }
}

// The sums to the output through shared memory, TM rows of a subgroup at a time; everybody is done with the chunks.
void store_sums(Block block) {
  const uint stage = gl_SubgroupID * TM * WN / 4u;
  const uint m = block.first_m + gl_SubgroupID / SUBGROUPS_N * WM, n = block.first_n + gl_SubgroupID % SUBGROUPS_N * WN;
  [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
    [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
      coopMatStore(sum_[i * MATRICES_N + j], shared_, stage + j * TN / 4u, WN / 4u, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint q = gl_SubgroupInvocationID; q < TM * WN / 4u; q += gl_SubgroupSize) {
      const uint row = m + i * TM + q / (WN / 4u), column = n + q % (WN / 4u) * 4u;
      if (row >= block.begin && row < block.end && column < pixels()) {
        vec4 v = uintBitsToFloat(shared_[stage + q]);
        if (HAS_BIAS != 0u) v += LOAD1(DTYPE, bias_, row);
        store_pixels(row, column, activate(v, ACT));
      }
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
  }
}

void main() {
  const Block block = block_of(group(), BM, BN);
  if (block.begin >= params.groups * params.out_channels) return;  // the whole workgroup
  [[unroll]] for (uint r = 0u; r < X_LOADS; ++r) {
    pixel_[r] = pixel_of(block.first_n + (lane() + r * LANES) % BN, block.begin / params.out_channels);
  }
  [[unroll]] for (uint i = 0u; i < MATRICES_M * MATRICES_N; ++i) sum_[i] = C_MATRIX(0.0);
  load_chunk(block, 0u);
  const uint chunks = (params.k + 31u) / 32u;
  for (uint chunk = 0u; chunk < chunks; ++chunk) {
    store_chunk();
    barrier();
    if (chunk + 1u < chunks) load_chunk(block, chunk + 1u);
    multiply_chunk();
    barrier();
  }
  store_sums(block);
}
