// SPDX-License-Identifier: Apache-2.0
// The smallest and the largest element of each part of each block, as ordered integers (quant/quantize.glslh): range[2 p] and
// range[2 p + 1] of part p. A workgroup has one part. Elements of a block are counted row-major inside the block.
// Bindings: 0 range, 1 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16
#pragma variant X_STORAGE buffer texture3d
#include "core/modes.glslh"
#include "core/texture.glslh"

layout(set = 0, binding = 0) writeonly buffer Range { int range_[]; };
#if defined(X_STORAGE_texture3d)
layout(set = 0, binding = 1) uniform TEXTURE(DTYPE) x_;
#else
layout(set = 0, binding = 1) readonly buffer X { WORD(DTYPE) x_[]; };
#endif
layout(push_constant) uniform Params {
  uint blocks;
  uint parts;       // of a block
  uint part_size;   // elements, a multiple of 4
  uint block_size;  // elements
  uint rank;
  uint size[8];
  uint block[8];
  uint columns;  // of a texture's rows
  uint height;
} params;

layout(constant_id = 1) const bool WHOLE_VEC4 = false;  // blocks, and rows of a texture, are whole vec4 groups that follow each other

#include "core/index.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/reduce.glslh"

// Index of element j of block b.
uint element(uint b, uint j) {
  uint blocks = b, inside = j, index = 0u, stride = 1u;
  for (uint d = params.rank; d-- > 0u;) {
    const uint begin = take(blocks, params.size[d] / params.block[d]) * params.block[d];
    index += (begin + take(inside, params.block[d])) * stride;
    stride *= params.size[d];
  }
  return index;
}

#if defined(X_STORAGE_texture3d)
vec4 texel_with(uint i, out uint column) {
  const uint row = i / params.columns;
  column = i - row * params.columns;
  return FETCH4(DTYPE, x_, texel_of(column / 4u, row, params.height));
}
float element_at(uint i) {
  uint column;
  const vec4 v = texel_with(i, column);
  return v[column % 4u];
}
vec4 vec4_at(uint q) {
  uint column;
  return texel_with(4u * q, column);
}
#else
float element_at(uint i) { return LOAD1(DTYPE, x_, i); }
vec4 vec4_at(uint q) { return LOAD4(DTYPE, x_, q); }
#endif

void main() {
  const uint b = group() / params.parts, part = group() - b * params.parts;
  if (b >= params.blocks) return;  // the whole workgroup
  const uint begin = part * params.part_size, end = min(begin + params.part_size, params.block_size);
  ivec4 lowest = ivec4(0x7fffffff), highest = ivec4(0x80000000);
  if (WHOLE_VEC4) {
    for (uint j = (begin >> 2) + lane(); j < end >> 2; j += LANES) {
      const ivec4 x = ordered(vec4_at(b * (params.block_size >> 2) + j));
      lowest = min(lowest, x);
      highest = max(highest, x);
    }
  } else {
    for (uint j = begin + lane(); j < end; j += LANES) {
      const int x = ordered(vec4(element_at(element(b, j)))).x;
      lowest.x = min(lowest.x, x);
      highest.x = max(highest.x, x);
    }
  }
  const int low = workgroup_min(min(min(lowest.x, lowest.y), min(lowest.z, lowest.w)));
  const int high = workgroup_max(max(max(highest.x, highest.y), max(highest.z, highest.w)));
  if (lane() == 0u) {
    range_[2u * group()] = low;
    range_[2u * group() + 1u] = high;
  }
}
