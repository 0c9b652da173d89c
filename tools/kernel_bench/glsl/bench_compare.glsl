// SPDX-License-Identifier: Apache-2.0
// Whether two runs gave the same bits: first_ becomes the least number of a run that differs from the one in b_.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"

layout(set = 0, binding = 0) buffer First { uint first_[]; };
layout(set = 0, binding = 1) readonly buffer A { uint a_[]; };
layout(set = 0, binding = 2) readonly buffer B { uint b_[]; };
layout(push_constant) uniform Params {
  uint bytes;
  uint run;
} params;

void main() {
  const uint i = item();
  if (4u * i >= params.bytes) return;
  uint difference = a_[i] ^ b_[i];
  if (4u * i + 4u > params.bytes) difference &= (1u << (8u * (params.bytes % 4u))) - 1u;  // what is after the last element
  if (difference != 0u) atomicMin(first_[0], params.run);
}
