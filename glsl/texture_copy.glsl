// SPDX-License-Identifier: Apache-2.0
// Copies a value from its buffer to its texture, or back, bit for bit except for the payload of a NaN. One invocation makes one vec4
// group: of the texture (rows of the buffer need not be whole vec4 groups), or of the buffer.
// Bindings: 0 out, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16 i32 u8 i8 boolean
#pragma variant TO texture3d buffer
#include "core/launch.glslh"
#include "core/texture.glslh"

#if defined(TO_texture3d)
layout(set = 0, binding = 0, FORMAT(DTYPE)) writeonly uniform IMAGE(DTYPE) out_;
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
#else
layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) uniform TEXTURE(DTYPE) x_;
#endif
layout(push_constant) uniform Params {
  uint count;    // texels, or elements of the buffer
  uint columns;  // of a row
  uint height;   // rows of a layer of the texture
} params;

#if defined(TO_texture3d)
void main() {
  const uint q = item();
  if (q >= params.count) return;
  const Texel to = texel(q, params.columns, params.height);
  VEC(DTYPE) v = ZERO(DTYPE);
  if (params.columns % 4u == 0u) {
    v = LOAD4(DTYPE, x_, q);
  } else {
    for (uint i = 0u; i < to.live; ++i) v[i] = LOAD1(DTYPE, x_, to.first + i);
  }
  PUT4(DTYPE, out_, to.at, v);
}
#else
void main() {
  const uint q = item(), first = 4u * q;
  if (first >= params.count) return;
  uint row = first / params.columns, column = first - row * params.columns;
  VEC(DTYPE) v = FETCH4(DTYPE, x_, texel_of(column / 4u, row, params.height));
  if (params.columns % 4u != 0u) {
    VEC(DTYPE) from = v;  // the texel that holds element i
    for (uint i = 0u; i < min(4u, params.count - first); ++i) {
      if (i != 0u && column % 4u == 0u) from = FETCH4(DTYPE, x_, texel_of(column / 4u, row, params.height));
      v[i] = from[column % 4u];
      if (++column == params.columns) {
        column = 0u;
        ++row;
      }
    }
  }
  STORE4(DTYPE, out_, q, v);
}
#endif
