// SPDX-License-Identifier: Apache-2.0
// out = a * b_size + b: two indices, broadcast, become one over both dimensions. An index out of range is reported, and the result
// is then out of range for the next kernel, too. One invocation computes a vec4 group.
// Bindings: 0 out, 1 status, 2 a, 3 b.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint A_MODE = 0;
layout(constant_id = 2) const uint B_MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(i32) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer A { WORD(i32) a_[]; };
layout(set = 0, binding = 3) readonly buffer B { WORD(i32) b_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat_a;
  uint repeat_b;
  int a_size;
  int b_size;
  uint call;
} params;

BROADCAST_INDEX
OPERAND(load_a, i32, a_, A_MODE, params.repeat_a, 0)
OPERAND(load_b, i32, b_, B_MODE, params.repeat_b, 0)

const int kOutside = 0x7fffffff;

int join(int a, int b, uint position) {
  const int row = a < 0 ? a + params.a_size : a;
  const int column = b < 0 ? b + params.b_size : b;
  if (row < 0 || row >= params.a_size) {
    if (a != kOutside) report_index(params.call, position, a, params.a_size);
    return kOutside;
  }
  if (column < 0 || column >= params.b_size) {
    report_index(params.call, position, b, params.b_size);
    return kOutside;
  }
  return row * params.b_size + column;
}

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const ivec4 a = load_a(q);
  const ivec4 b = load_b(q);
  ivec4 v = ivec4(0);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) v[k] = join(a[k], b[k], 4u * q + k);
  STORE4(i32, out_, q, v);
}
