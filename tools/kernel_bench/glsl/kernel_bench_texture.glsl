// SPDX-License-Identifier: Apache-2.0
// What kernel_bench does with a texture of vec4 groups beside a kernel: an invocation for each texel of the image, guards included.
//   fill  every lane becomes what `word` is in the format
//   tail  so do the lanes that hold no element: from `live` on in the texels of column `tail`
//   bits  the lanes to a buffer, 32 bits each
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant DTYPE f32 f16 i32 i8 u8
#pragma variant DOES fill tail bits
#include "launch.glslh"
#include "texture.glslh"

#if defined(DOES_bits)
layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) uniform TEXTURE(DTYPE) x_;
#elif defined(DOES_tail)
layout(set = 0, binding = 0, FORMAT(DTYPE)) uniform IMAGE(DTYPE) out_;
#else
layout(set = 0, binding = 0, FORMAT(DTYPE)) writeonly uniform IMAGE(DTYPE) out_;
#endif
layout(push_constant) uniform Params {
  uint width;
  uint height;
  uint depth;
  uint word;
  uint tail;
  uint live;
} params;

#if !defined(DOES_bits)
VEC(DTYPE) pattern() {
#if defined(DTYPE_f32)
  return vec4(uintBitsToFloat(params.word));
#elif defined(DTYPE_f16)
  return vec4(unpackHalf2x16(params.word).x);
#else
  return ivec4(int(params.word));  // whose low bytes a format of bytes takes
#endif
}
#endif

void main() {
  const uint i = item(), row = i / params.width, layer = row / params.height;
  if (layer >= params.depth) return;
  const ivec3 at = ivec3(i - row * params.width, row - layer * params.height, layer);
#if defined(DOES_bits)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
  out_[i] = floatBitsToUint(FETCH4(DTYPE, x_, at));
#else
  out_[i] = uvec4(FETCH4(DTYPE, x_, at));
#endif
#elif defined(DOES_tail)
  if (at.x != int(params.tail)) return;
  VEC(DTYPE) v = VEC(DTYPE)(imageLoad(out_, at));
  for (uint lane = params.live; lane < 4u; ++lane) v[lane] = pattern()[lane];
  PUT4(DTYPE, out_, at, v);
#else
  PUT4(DTYPE, out_, at, pattern());
#endif
}
