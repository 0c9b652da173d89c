// SPDX-License-Identifier: Apache-2.0
// out = clamp(round(x * (1 / scale)) + zero, low, high), with a scale and a zero point for each block (quant/blocks.glslh); LAST
// rounds after the addition. Every step is rounded as eager PyTorch rounds it (quant/quantize.glslh). SPAN: a workgroup stays in one
// block and computes one reciprocal for many vec4 groups; else one invocation computes one vec4 group, anywhere.
// Bindings: 0 out, 1 x, 2 scale, 3 zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_samplerless_texture_functions : require
#pragma variant IN f32 f16
#pragma variant OUT u8 i8 i32
#pragma variant STORAGE buffer texture3d
#include "core/modes.glslh"
#include "core/texture.glslh"

#if defined(STORAGE_texture3d)
layout(set = 0, binding = 0, FORMAT(OUT)) writeonly uniform IMAGE(OUT) out_;
layout(set = 0, binding = 1) uniform TEXTURE(IN) x_;
#elif defined(IN_f16) && !defined(OUT_i32)
#define HAS_PAIRS
layout(set = 0, binding = 0) writeonly buffer Out { uvec2 out_[]; };  // two vec4 groups each
layout(set = 0, binding = 1) readonly buffer X { uvec4 x_[]; };
uvec2 load_x(uint q) { return uvec2(x_[q >> 1][2u * (q & 1u)], x_[q >> 1][2u * (q & 1u) + 1u]); }
void store(uint q, ivec4 v) { out_[q >> 1][q & 1u] = PACK(OUT, v); }
#else
layout(set = 0, binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
WORD(IN) load_x(uint q) { return x_[q]; }
void store(uint q, ivec4 v) { STORE4(OUT, out_, q, v); }
#endif
layout(push_constant) uniform Params {
  BLOCK_PARAMS
  TEXEL_PARAMS
  float low;
  float high;
} params;

#define BLOCK_BINDING 2
#define BLOCK_SPEC 1
#include "quant/blocks.glslh"
#include "quant/quantize.glslh"

layout(constant_id = 4) const uint STEPS = STEPS_F32;
layout(constant_id = 5) const bool LAST = false;
layout(constant_id = 6) const bool PAIRS = false;  // blocks are whole pairs of vec4 groups, which a SPAN loads and stores together

// The reciprocal is rounded to the dtype of the scale, also where x has another; for a number, params.scale is the reciprocal.
float inverse_of(uint b) {
  return SCALE == STORED_NUMBER ? params.scale : inverse(scale_of(b), SCALE == STORED_F16 ? STEPS_F16 : STEPS_F32);
}

// The integers of quantized numbers, clamped.
ivec4 clamped(vec4 v) {
#ifdef OUT_i32
  // What does not fit in 32 bits, NaN included, is -2^31 in PyTorch.
  const vec4 fits = mix(clamp(v, params.low, params.high), vec4(-2147483648.0), is_nan(v));
  return ivec4(mix(vec4(-2147483648.0), fits, lessThan(fits, vec4(2147483648.0))));
#else
  return to_whole(v, params.low, params.high);
#endif
}

// Whether all results are far below 2^11: quantize() of quant/quantize.glslh, which skips most roundings to fp16, needs that.
bool is_small(float zero) {
#ifdef OUT_i32
  return false;
#else
  return !LAST && params.low >= -1024.0 && params.high <= 1024.0 && abs(zero) <= 512.0 && zero == trunc(zero);
#endif
}

ivec4 quantized(vec4 x, float inverse, float zero) {
  if (is_small(zero)) return quantize(x, inverse, zero, params.low, params.high, STEPS);
  return clamped(shifted(x, inverse, zero, STEPS, LAST));
}

#ifdef OUT_i32
#define BYTES_ROUNDED_FIRST false
#else
#define BYTES_ROUNDED_FIRST !LAST
#endif
// Whether quantized_usual(), which is a few instructions, does for a whole block.
bool is_usual_block(float inverse, float zero) {
  if (BYTES_ROUNDED_FIRST) return is_small(zero) && is_usual(inverse, zero);
  return STEPS != STEPS_F16 && !is_extreme(inverse);
}

ivec4 quantized_usual(vec4 x, float inverse, float zero) {
  if (BYTES_ROUNDED_FIRST) return quantize_usual(x, inverse, zero, params.low, params.high, STEPS);
  precise const vec4 v = x * inverse;
  precise const vec4 q = (LAST ? v : roundEven(v)) + zero;
  return clamped(LAST ? roundEven(q) : q);
}

// The result for the `live` elements from `first` on: once for each block that they are in, from its first element on.
ivec4 quantized_vec4(vec4 x, uint first, uint live) {
  ivec4 v = ivec4(0);
  uint last = ~0u;
  [[dont_unroll]] for (uint i = 0u; i < live; ++i) {
    const uint b = block_of(first + i);
    if (b == last) continue;
    v = mix(v, quantized(x, inverse_of(b), zero_of(b)), greaterThanEqual(uvec4(0, 1, 2, 3), uvec4(i)));
    last = b;
  }
  return v;
}

#if !defined(STORAGE_texture3d)
#define VEC4_COUNT (SPAN == 0u ? 2u : SPAN / LANES)  // of an invocation in a SPAN

// Where quantized_usual() does not do. A loop: all of that code, for each vec4 group, took drivers half a second to compile.
void quantize_span(uint q, uint end, float inverse, float zero) {
  [[dont_unroll]] for (; q < end; q += LANES) store(q, quantized(UNPACK(IN, load_x(q)), inverse, zero));
}
#endif

void main() {
#if defined(STORAGE_texture3d)
  if (item() >= params.texels) return;
  const Texel here = texel(item(), params.columns, params.height);
  PUT4(OUT, out_, here.at, quantized_vec4(FETCH4(IN, x_, here.at), here.first, here.live));
#else
  if (SPAN != 0u) {
    uint b, q, end;
    span(b, q, end);
    // All loads are issued before the reciprocal is computed, which waits for the load of the scale.
#ifdef HAS_PAIRS
    if (PAIRS) {
      const uint pair = (q - lane()) / 2u + lane(), last = end / 2u - 1u;
      uvec4 x[VEC4_COUNT / 2u];
      [[unroll]] for (uint i = 0u; i < VEC4_COUNT / 2u; ++i) x[i] = x_[min(pair + i * LANES, last)];
      const float inverse = inverse_of(b), zero = zero_of(b);
      if (!is_usual_block(inverse, zero)) {
        quantize_span(q, end, inverse, zero);
        return;
      }
      [[unroll]] for (uint i = 0u; i < VEC4_COUNT / 2u; ++i) {
        if (pair + i * LANES > last) break;
        const ivec4 low = quantized_usual(UNPACK(IN, x[i].xy), inverse, zero);
        const ivec4 high = quantized_usual(UNPACK(IN, x[i].zw), inverse, zero);
        out_[pair + i * LANES] = uvec2(PACK(OUT, low), PACK(OUT, high));
      }
      return;
    }
#endif
    WORD(IN) x[VEC4_COUNT];
    [[unroll]] for (uint i = 0u; i < VEC4_COUNT; ++i) x[i] = load_x(min(q + i * LANES, end - 1u));
    const float inverse = inverse_of(b), zero = zero_of(b);
    if (!is_usual_block(inverse, zero)) {
      quantize_span(q, end, inverse, zero);
      return;
    }
    [[unroll]] for (uint i = 0u; i < VEC4_COUNT; ++i) {
      if (q + i * LANES < end) store(q + i * LANES, quantized_usual(UNPACK(IN, x[i]), inverse, zero));
    }
    return;
  }
  const uint q = item(), first = 4u * q;
  if (first < params.count) store(q, quantized_vec4(UNPACK(IN, load_x(q)), first, min(4u, params.count - first)));
#endif
}
