// SPDX-License-Identifier: Apache-2.0
// probe_fragments.glsl of matrices of bytes: a lane writes 0x600d when all its elements, also those of a product, are the expected
// ones (vulkan/probe.h).
// Bindings: 0 out.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "core/launch.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };

shared uvec4 rows_[32];     // 16 x 32 bytes: the number of the row
shared uvec4 columns_[32];  // and of the column
shared ivec4 sums_[32];     // 16 x 8 of 8 row + column

#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, gl_MatrixUse##use>

// Element e of a lane's share of an operand: its place along the lane's row or column, and the number of that row or column.
uint along(uint e, uint t) { return 4u * t + (e & 3u) + (e & 4u) * 4u; }
uint across(uint e, uint g) { return g + (e >> 3) * 8u; }

void main() {
  const uint l = lane(), g = l >> 2, t = l & 3u;
  const ivec4 four = ivec4(0, 1, 2, 3);
  rows_[l] = uvec4((l >> 1) * 0x01010101u);
  for (int i = 0; i < 4; ++i) columns_[l][i] = pack_i8(four + 4 * i + 16 * int(l & 1u));
  sums_[l] = four + 4 * int(l);
  barrier();

  FRAGMENT(int8_t, 16, 32, A) a_row, a_column;
  FRAGMENT(int8_t, 32, 8, B) b_row, b_column;
  FRAGMENT(int, 16, 8, Accumulator) c;
  coopMatLoad(a_row, rows_, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(a_column, columns_, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(b_row, rows_, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(b_column, columns_, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(c, sums_, 0, 2, gl_CooperativeMatrixLayoutRowMajor);

  // Signed, of both signs, and different in each place.
  FRAGMENT(int8_t, 16, 32, A) a;
  FRAGMENT(int8_t, 32, 8, B) b;
  bool right = a.length() == 16 && b.length() == 8 && c.length() == 4;
  for (uint e = 0u; e < 16u; ++e) {
    right = right && uint(a_row[e]) == across(e, g) && uint(a_column[e]) == along(e, t);
    a[e] = int8_t(int(along(e, t)) - 5 * int(across(e, g)));
  }
  for (uint e = 0u; e < 8u; ++e) {
    right = right && uint(b_row[e]) == g && uint(b_column[e]) == along(e, t);
    b[e] = int8_t(int(along(e, t)) * 3 - 100 + int(g));
  }
  const FRAGMENT(int, 16, 8, Accumulator) product = coopMatMulAdd(a, b, c);
  for (uint e = 0u; e < 4u; ++e) {
    const int row = int(g + (e >> 1) * 8u), column = int(2u * t + (e & 1u));
    right = right && c[e] == 8 * row + column;
    // The sum over k of (k - 5 row) (3 k - 100 + column): sums of k and of k^2 below 32 are 496 and 10416.
    const int sum = 3 * 10416 + (column - 100 - 15 * row) * 496 - 32 * 5 * row * (column - 100);
    right = right && product[e] == sum + 8 * row + column;
  }
  out_[l] = right ? 0x600du : 0u;
}
