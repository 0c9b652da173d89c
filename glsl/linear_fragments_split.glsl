// SPDX-License-Identifier: Apache-2.0
// x . w^T for many rows of x (the formula is in linear/linear.glslh), fp32, by cooperative matrices whose elements are in the lanes
// that vulkan/probe.h expects. x and weights come as two fp16 for each element, of which the second counts 2^-11 (linear_split.glsl,
// linear_pack_split.glsl). A packed step is then an operand as it is: weights go from global memory to registers to the products, and
// a lane loads a step of the next chunk of 32 columns as soon as it has multiplied this one. Only x goes through shared memory, in
// two buffers: one barrier a chunk. A workgroup computes BM x BN outputs, a subgroup WM x WN.
// Bindings: 0 out, 1 x, 2 weight, 3 bias, 4 residual, 5 scale, 6 zero, 7 rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#define SPLIT
#define DTYPE f32
#define DTYPE_f32 1
#define WEIGHT_f32 1
#define ONE_END  // H200, written out: 512 x 768 x 768 37.0 us, not 33.4; 512 x 4096 x 4096 154.2, not 154.9
#include "linear/matrix.glslh"

#define ROW 5u                     // uvec4 of a row of x in shared memory: 32 fp16 and 8 of padding
#define X_LOADS (BM * 4u / LANES)  // half8 of a part
#define PANELS (WN / 16u)          // of a subgroup
#define BUFFER_ROWS (2u * BM)      // of a buffer: high parts, then low ones

uvec4 x_next_[2u * X_LOADS];
uvec4 w_[PANELS * 4u];  // of both steps of a chunk, high and low
C_MATRIX low_[MATRICES_M * PANELS];

// The row of x of load r; its half8 is lane % 4.
uint x_row(uint r) { return (lane() >> 2) + r * (LANES / 4u); }

void load_x(uint chunk) {
  [[unroll]] for (uint r = 0u; r < 2u * X_LOADS; ++r) {
    const uint row = within_m(first_m() + x_row(r % X_LOADS)) * 2u + r / X_LOADS;
    x_next_[r] = load_half8(row, chunk * 4u + (lane() & 3u));
  }
}

// A half8 holds the columns of one t in two steps: its words go to columns 2t, 2t + 8 of one and of the next matrix.
void store_x(uint buffer_row) {
  [[unroll]] for (uint r = 0u; r < 2u * X_LOADS; ++r) {
    const uint base = (buffer_row + r / X_LOADS * BM + x_row(r % X_LOADS)) * ROW, t = lane() & 3u;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) shared_[base + i][t] = x_next_[r][i];
  }
}

void load_step(uint chunk, uint s) {
  [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
    const uint panel = within_n(first_n() / 16u + gl_SubgroupID % SUBGROUPS_N * PANELS + j);
    const uint at = ((panel * TILES * 2u + chunk) * 4u + 2u * s) * 32u + gl_SubgroupInvocationID;
    [[unroll]] for (uint part = 0u; part < 2u; ++part) w_[(2u * s + part) * PANELS + j] = weight_[at + part * 32u];
  }
}

B_MATRIX w_matrix(uvec4 words) {
  B_MATRIX b;
  [[unroll]] for (uint e = 0u; e < 4u; ++e) {
    const f16vec2 both = unpackFloat2x16(words[e]);
    b[2u * e] = both.x;
    b[2u * e + 1u] = both.y;
  }
  return b;
}

A_MATRIX x_matrix(uint row, uint i, uint s) {
  A_MATRIX a;
  coopMatLoad(a, shared_, (row + i * 16u) * ROW + 2u * s, ROW, gl_CooperativeMatrixLayoutRowMajor);
  return a;
}

// Sums of products with one low part, which count 2^-11, are kept apart; products of two low parts are left out.
void multiply_chunk(uint buffer_row, uint next) {
  const uint row = buffer_row + gl_SubgroupID / SUBGROUPS_N * WM;
  [[unroll]] for (uint s = 0u; s < 2u; ++s) {
    B_MATRIX high[PANELS], low[PANELS];
    [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
      high[j] = w_matrix(w_[2u * s * PANELS + j]);
      low[j] = w_matrix(w_[(2u * s + 1u) * PANELS + j]);
    }
    load_step(next, s);
    [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) {
      const A_MATRIX a = x_matrix(row, i, s), a_low = x_matrix(row + BM, i, s);
      [[unroll]] for (uint j = 0u; j < PANELS; ++j) {
        const uint at = i * PANELS + j;
        sum_[at] = coopMatMulAdd(a, high[j], sum_[at]);
        low_[at] = coopMatMulAdd(a_low, high[j], low_[at]);
      }
      [[unroll]] for (uint j = 0u; j < PANELS; ++j)
        low_[i * PANELS + j] = coopMatMulAdd(a, low[j], low_[i * PANELS + j]);
    }
  }
}

void main() {
  if (group() >= params.row_blocks * ((N + BN - 1u) / BN)) return;  // the whole workgroup
  clear_sums();
  [[unroll]] for (uint i = 0u; i < MATRICES_M * PANELS; ++i) low_[i] = C_MATRIX(0.0);
  load_x(0u);
  load_step(0u, 0u);
  load_step(0u, 1u);
  store_x(0u);
  barrier();
  // Of few tiles a driver would write them all out, and take longer to compile them; they run no faster.
  [[dont_unroll]] for (uint tile = 0u; tile < TILES; ++tile) {
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
      const uint next = min(2u * tile + h + 1u, 2u * TILES - 1u);  // the last one twice, so that there is no branch
      load_x(next);
      multiply_chunk(h * BUFFER_ROWS, next);
      store_x((1u - h) * BUFFER_ROWS);
      barrier();
    }
  }
  [[unroll]] for (uint i = 0u; i < MATRICES_M * PANELS; ++i) sum_[i] = sum_[i] + low_[i] * 0.00048828125;  // 2^-11, exact
  store_sums();
}
