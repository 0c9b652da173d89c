// SPDX-License-Identifier: Apache-2.0
// out = clamp(round(act(real(a) OP real(b)) / out_scale) + out_zero, low, high), real(q) = (q - zero) * scale, elementwise, both
// broadcast; every step is rounded as eager PyTorch rounds it (quant/quantize.glslh). One invocation computes a vec4 group of the
// output.
// Bindings: 0 out, 1 a, 2 b.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE i8 u8
#pragma choice BINARY add mul
#include "math/activation.glslh"
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint BINARY = 0;
layout(constant_id = 2) const uint A_MODE = 0;
layout(constant_id = 3) const uint B_MODE = 0;
layout(constant_id = 4) const uint ACT = 0u;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer A { WORD(DTYPE) a_[]; };
layout(set = 0, binding = 2) readonly buffer B { WORD(DTYPE) b_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint repeat_a;
  uint repeat_b;
  float a_scale;
  float b_scale;
  int a_zero;
  int b_zero;
  float out_inverse;
  float out_zero;
  float low;
  float high;
} params;

BROADCAST_INDEX
OPERAND(load_a, DTYPE, a_, A_MODE, params.repeat_a, 0)
OPERAND(load_b, DTYPE, b_, B_MODE, params.repeat_b, 0)

void main() {
  const uint q = item();
  if (4u * q >= params.count) return;
  const vec4 a = dequantize(load_a(q), params.a_scale, params.a_zero, STEPS_F32);
  const vec4 b = dequantize(load_b(q), params.b_scale, params.b_zero, STEPS_F32);
  precise vec4 v = BINARY == BINARY_add ? a + b : a * b;
  v = activate(v, ACT);
  STORE4(DTYPE, out_, q, requantize(v, params.out_inverse, params.out_zero, params.low, params.high));
}
