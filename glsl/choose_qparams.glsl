// SPDX-License-Identifier: Apache-2.0
// A scale and a zero point for each block, from the ranges of its parts (choose_qparams_range.glsl), as quant/quantize.glslh
// chooses them. One invocation computes four blocks, so that it writes whole words.
// Bindings: 0 scale, 1 zero, 2 range.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant SCALE f32 f16
#pragma variant POINT i8 u8 i32 f32
#include "core/launch.glslh"
#include "quant/quantize.glslh"
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Scale { WORD(SCALE) scale_[]; };
layout(set = 0, binding = 1) writeonly buffer Zero { WORD(POINT) zero_[]; };
layout(set = 0, binding = 2) readonly buffer Range { int range_[]; };
layout(push_constant) uniform Params {
  uint blocks;
  uint parts;
  float low;
  float high;
  float eps;
} params;

layout(constant_id = 1) const uint MAPPING = QPARAMS_ASYMMETRIC;
layout(constant_id = 2) const uint STEPS = STEPS_F32;

QParams choose(uint b) {
  int lowest = 0x7fffffff, highest = int(0x80000000);
  for (uint p = b * params.parts; p < (b + 1u) * params.parts; ++p) {
    lowest = min(lowest, range_[2u * p]);
    highest = max(highest, range_[2u * p + 1u]);
  }
  const vec2 range = range_of(lowest, highest);
  return choose_qparams(range.x, range.y, MAPPING, params.low, params.high, params.eps, STEPS);
}

void main() {
  const uint q = item();
  if (4u * q >= params.blocks) return;
  vec4 scale = vec4(1.0), zero = vec4(0.0);
  for (uint i = 0u; i < 4u && 4u * q + i < params.blocks; ++i) {
    const QParams chosen = choose(4u * q + i);
    scale[i] = chosen.scale;
    zero[i] = chosen.zero;
  }
#if defined(SCALE_f16)
  scale_[q] = pack_half(scale);
#else
  STORE4(SCALE, scale_, q, scale);
#endif
#if defined(POINT_f32)
  STORE4(POINT, zero_, q, zero);
#else
  STORE4(POINT, zero_, q, mix(ivec4(mix(zero, vec4(0.0), is_nan(zero))), ivec4(0x80000000), is_nan(zero)));
#endif
}
