// SPDX-License-Identifier: Apache-2.0
// out = (x - zero) * scale, with a scale and a zero point for each block (quant/blocks.glslh), rounded as eager PyTorch does.
// INTEGERS: x - zero is computed in integers; else both become floats first. SPAN: a workgroup stays in one block; else one
// invocation computes a vec4 group.
// Bindings: 0 out, 1 x, 2 scale, 3 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant IN u8 i8 i32
#pragma variant OUT f32 f16
#pragma variant STORAGE buffer texture3d
#include "core/modes.glslh"
#include "core/texture.glslh"

#if defined(STORAGE_texture3d)
layout(set = 0, binding = 0, FORMAT(OUT)) writeonly uniform IMAGE(OUT) out_;
layout(set = 0, binding = 1) uniform TEXTURE(IN) x_;
#else
layout(set = 0, binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
#endif
layout(push_constant) uniform Params {
  BLOCK_PARAMS
  TEXEL_PARAMS
} params;

#define BLOCK_BINDING 2
#define BLOCK_SPEC 1
#include "quant/blocks.glslh"
#include "quant/quantize.glslh"

layout(constant_id = 4) const uint STEPS = STEPS_F32;
layout(constant_id = 5) const bool INTEGERS = false;

// The float nearest to a - b, which may need 33 bits: the half is rounded instead, with a sticky lowest bit.
float difference(int a, int b) {
  const int d = int(uint(a) - uint(b));
  if (((a ^ b) & (a ^ d)) >= 0) return float(d);
  const uint halved = (uint(d) >> 1) | (uint(d) & 1u);
  return 2.0 * float(int(a < 0 ? halved | 0x80000000u : halved));
}

float without_zero(int x, uint b) {
  if (INTEGERS) {
    const float d = difference(x, whole_zero_of(b));
    return STEPS == STEPS_F16 ? half_round(d) : d;
  }
  const float zero = zero_of(b);
  if (STEPS != STEPS_F16) return float(x) - zero;
  precise const float d = half_round(float(x)) - half_round(zero);
  return half_round(d);
}

vec4 dequantized(ivec4 x, uint b, float scale) {
  const vec4 d = vec4(without_zero(x.x, b), without_zero(x.y, b), without_zero(x.z, b), without_zero(x.w, b));
  return rescaled(d, scale, STEPS);
}

// The result for the `live` elements from `first` on.
vec4 dequantized_vec4(ivec4 x, uint first, uint live) {
  const uint b = block_of(first);
  vec4 v = dequantized(x, b, scale_of(b));
  for (uint i = 1u; i < live; ++i) {
    const uint other = block_of(first + i);
    if (other != b) v[i] = dequantized(ivec4(x[i]), other, scale_of(other)).x;
  }
  return v;
}

#if defined(STORAGE_texture3d)
void main() {
  if (item() >= params.texels) return;
  const Texel here = texel(item(), params.columns, params.height);
  PUT4(OUT, out_, here.at, dequantized_vec4(FETCH4(IN, x_, here.at), here.first, here.live));
}
#else
void store(uint q, vec4 v) {
#if defined(OUT_f16)
  out_[q] = pack_half(v);
#else
  STORE4(OUT, out_, q, v);
#endif
}

void main() {
  if (SPAN != 0u) {
    uint b, q, end;
    span(b, q, end);
    if (4u * q >= params.count) return;
    const float scale = scale_of(b);
    for (; q < end; q += LANES) store(q, dequantized(LOAD4(IN, x_, q), b, scale));
    return;
  }
  const uint q = item(), first = 4u * q;
  if (first < params.count) store(q, dequantized_vec4(LOAD4(IN, x_, q), first, min(4u, params.count - first)));
}
#endif
