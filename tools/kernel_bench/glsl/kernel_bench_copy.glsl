// SPDX-License-Identifier: Apache-2.0
// Moves memory and does nothing else: the ceilings of reading and of copying. Each invocation takes every STRIDE-th vector,
// four at a time, neighbours neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DOES read copy
#include "launch.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer In { uvec4 in_[]; };
layout(push_constant) uniform Params {
  uint count;   // of vectors
  uint stride;  // invocations of the dispatch
} params;

void main() {
  uvec4 sum = uvec4(0u);
  for (uint i = item(); i < params.count; i += 4u * params.stride) {
    uvec4 v[4];
    [[unroll]] for (uint j = 0u; j < 4u; ++j) v[j] = in_[min(i + j * params.stride, params.count - 1u)];
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
#if defined(DOES_copy)
      if (i + j * params.stride < params.count) out_[i + j * params.stride] = v[j];
#else
      sum |= v[j];
#endif
    }
  }
#if defined(DOES_read)
  if (sum == uvec4(0x9e3779b9u)) out_[0] = sum;  // never, but the compiler cannot know
#endif
}
