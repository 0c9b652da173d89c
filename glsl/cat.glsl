// SPDX-License-Identifier: Apache-2.0
// Concatenates up to four inputs along `dim`. A row of the output (all elements with the same index over the dimensions before
// `dim`) is a row of input 0, then one of input 1, and so on. One invocation moves a vec4 group.
// Bindings: 0 out, 1 in0, 2 in1, 3 in2, 4 in3.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16 b8
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(constant_id = 1) const bool WHOLE_VEC4 = false;  // every row of every input is whole vec4 groups

layout(set = 0, binding = 0) writeonly buffer Out { WORD(BITS) out_[]; };
layout(set = 0, binding = 1) readonly buffer In0 { WORD(BITS) in0_[]; };
layout(set = 0, binding = 2) readonly buffer In1 { WORD(BITS) in1_[]; };
layout(set = 0, binding = 3) readonly buffer In2 { WORD(BITS) in2_[]; };
layout(set = 0, binding = 4) readonly buffer In3 { WORD(BITS) in3_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint end0;  // where the row of input 0 ends in a row of the output; end3 is the length of the output's row
  uint end1;
  uint end2;
  uint end3;
} params;

// WHOLE_VEC4: loads the elements i .. i+3; else element i, repeated.
uvec4 load(uint i) {
  uint row = i;
  const uint at = take(row, params.end3);
#define FROM(buf, begin, end)                                                                             \
  {                                                                                                       \
    const uint index = row * (end - begin) + at - begin;                                                  \
    return WHOLE_VEC4 ? LOAD4(BITS, buf, index >> 2) : uvec4(LOAD1(BITS, buf, index));                          \
  }
  if (at < params.end0) FROM(in0_, 0u, params.end0)
  if (at < params.end1) FROM(in1_, params.end0, params.end1)
  if (at < params.end2) FROM(in2_, params.end1, params.end2)
  FROM(in3_, params.end2, params.end3)
}

void main() {
  const uint q = item();
  const uint i = 4u * q;
  if (i >= params.count) return;
  uvec4 v = load(i);
  if (!WHOLE_VEC4) {
    for (uint k = 1u; k < 4u; ++k) v[k] = load(min(i + k, params.count - 1u)).x;
  }
  STORE4(BITS, out_, q, v);
}
