// SPDX-License-Identifier: Apache-2.0
// kernel_bench's own copy of a packed weight in a texture: vector i of it is texel (i % 4096, i / 4096); texels without one become
// `word`, so that a kernel that reads them is found out.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#include "launch.glslh"

layout(set = 0, binding = 0, rgba32ui) writeonly uniform uimage2D out_;
layout(set = 0, binding = 1) uniform utexture2D x_;
layout(push_constant) uniform Params {
  uint width;  // of the copy
  uint height;
  uint count;  // of vectors
  uint word;
} params;

void main() {
  const uint i = item(), y = i / params.width, x = i - y * params.width;
  if (y >= params.height) return;
  const bool live = x < 4096u && y * 4096u + x < params.count;
  const ivec2 at = ivec2(x, y);
  imageStore(out_, at, live ? texelFetch(x_, at, 0) : uvec4(params.word));
}
