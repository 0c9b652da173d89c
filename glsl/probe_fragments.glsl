// SPDX-License-Identifier: Apache-2.0
// Tests which lane holds which element of a cooperative matrix (vulkan/probe.h): a lane writes 0x600d when all its elements, also
// those of a product, are the expected ones, and subnormal fp16 numbers are not flushed to 0.
// Bindings: 0 out.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "core/launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };

shared uvec4 halves_[32];  // 16 x 16 of 16 row + column
shared vec4 wide_[64];     // the same in fp32
shared vec4 narrow_[32];   // 16 x 8 of 8 row + column

#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, gl_MatrixUse##use>

// Element e of a lane's share of an operand: its place along the lane's row or column, and the number of that row or column.
uint along(uint e, uint t) { return 2u * t + (e & 1u) + (e & 2u) * 4u; }
uint across(uint e, uint g) { return g + (e >> 2) * 8u; }

void main() {
  const uint l = lane(), g = l >> 2, t = l & 3u;
  const vec4 four = vec4(0, 1, 2, 3);
  halves_[l] = uvec4(packHalf2x16(8.0 * l + vec2(0, 1)), packHalf2x16(8.0 * l + vec2(2, 3)), packHalf2x16(8.0 * l + vec2(4, 5)),
                     packHalf2x16(8.0 * l + vec2(6, 7)));
  wide_[l] = 4.0 * l + four;
  wide_[l + 32u] = 4.0 * (l + 32u) + four;
  narrow_[l] = 4.0 * l + four;
  barrier();

  FRAGMENT(float16_t, 16, 16, A) a;
  FRAGMENT(float16_t, 16, 16, B) b;
  FRAGMENT(float16_t, 16, 8, B) b8;
  FRAGMENT(float, 16, 16, Accumulator) c;
  FRAGMENT(float, 16, 8, Accumulator) c8;
  coopMatLoad(a, halves_, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(b, halves_, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(b8, halves_, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(c, wide_, 0, 4, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(c8, narrow_, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  const FRAGMENT(float, 16, 16, Accumulator) product = coopMatMulAdd(a, b, FRAGMENT(float, 16, 16, Accumulator)(0.0));
  const FRAGMENT(float, 16, 8, Accumulator) product8 = coopMatMulAdd(a, b8, FRAGMENT(float, 16, 8, Accumulator)(0.0));

  // The nibble 15 as a subnormal fp16 number, as in linear/matrix.glslh; from memory, so that the compiler cannot fold it.
  const uint nibble = halves_[0].x >> 26;
  const f16vec2 small = fma(unpackFloat2x16(nibble | nibble << 16), f16vec2(32768.0), f16vec2(-0.015625));

  bool right = small == f16vec2(0.013671875) && a.length() == 8 && b.length() == 8 && b8.length() == 4 && c.length() == 8 &&
               c8.length() == 4;
  for (uint e = 0u; e < 8u; ++e) {
    const uint place = 16u * across(e, g) + along(e, t);
    right = right && uint(float(a[e])) == place && uint(float(b[e])) == place && uint(c[e]) == place;
    if (e < 4u) right = right && uint(float(b8[e])) == 16u * g + along(e, t);
    // An element of the product of the index matrices: sum over k of (16 row + k) (16 column + k).
    const uint row = across(e, g), column = along(e, t);
    right = right && uint(product[e]) == 4096u * row * column + 16u * 120u * (row + column) + 1240u;
  }
  for (uint e = 0u; e < 4u; ++e) {
    const uint row = g + (e >> 1) * 8u, column = 2u * t + (e & 1u);
    right = right && uint(c8[e]) == 8u * row + column;
    right = right && uint(product8[e]) == 4096u * row * column + 16u * 120u * (row + column) + 1240u;
  }
  out_[l] = right ? 0x600du : 0u;
}
