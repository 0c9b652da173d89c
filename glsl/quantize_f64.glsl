// SPDX-License-Identifier: Apache-2.0
// out = clamp(round(x * (1 / scale) + zero), low, high) as PyTorch computes it with fp64 scales that hold fp32 numbers
// (quantized_decomposed.quantize_per_token): each step is rounded to the 53 bits of fp64, here in integers of 96 bits, lowest word
// first, so that no device needs doubles. Zero points are integers. One invocation computes a vec4 group.
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
#else
layout(set = 0, binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
layout(set = 0, binding = 1) readonly buffer X { WORD(IN) x_[]; };
#endif
layout(push_constant) uniform Params {
  BLOCK_PARAMS
  TEXEL_PARAMS
  int low;
  int high;
} params;

#define BLOCK_BINDING 2
#define BLOCK_SPEC 1
#include "quant/blocks.glslh"
#include "quant/quantize.glslh"

const int kNotANumber = int(0x80000000);  // the result of PyTorch's conversion of NaN; as a byte 0
const int kFraction = 54;                 // fraction bits of a fixed-point number

uvec3 shift_left(uvec3 v, int n) {
  for (; n >= 32; n -= 32) v = uvec3(0u, v.xy);
  return n == 0 ? v : uvec3(v.x << n, (v.yz << n) | (v.xy >> (32 - n)));
}

uvec3 shift_right(uvec3 v, int n) {
  for (; n >= 32; n -= 32) v = uvec3(v.yz, 0u);
  return n == 0 ? v : uvec3((v.xy >> n) | (v.yz << (32 - n)), v.z >> n);
}

uvec3 add(uvec3 a, uvec3 b) {
  uint low_carry, carry, more;
  const uint x = uaddCarry(a.x, b.x, low_carry);
  uint y = uaddCarry(a.y, b.y, carry);
  y = uaddCarry(y, low_carry, more);
  return uvec3(x, y, a.z + b.z + carry + more);
}

uvec3 negated(uvec3 v) { return add(~v, uvec3(1u, 0u, 0u)); }
bool less(uvec3 a, uvec3 b) { return a.z != b.z ? a.z < b.z : a.y != b.y ? a.y < b.y : a.x < b.x; }
int bits_of(uvec3 v) { return v.z != 0u ? 65 + findMSB(v.z) : v.y != 0u ? 33 + findMSB(v.y) : 1 + findMSB(v.x); }

// v / 2^n to the nearest, ties to even.
uvec3 round_off(uvec3 v, int n) {
  if (n <= 0) return v;
  const uvec3 kept = shift_right(v, n), one = uvec3(1u, 0u, 0u);
  const uvec3 cut = add(v, negated(shift_left(kept, n))), tie = shift_left(one, n - 1);
  const bool up = less(tie, cut) || (tie == cut && (kept.x & 1u) != 0u);
  return up ? add(kept, one) : kept;
}

// The reciprocal of a normal or denormal scale: m * 2^e, m of 53 bits. By long division, eight bits at a time.
void reciprocal_of(uint bits, out uvec2 m, out int e) {
  int exponent;
  const uint divisor = normalized(bits & 0x7fffffffu, exponent);
  e = 74 - exponent;
  m = uvec2(0u, 1u << 21);
  if (divisor == 0x800000u) {
    m.y = 1u << 20;
    e += 1;
    return;
  }
  uint rest = 1u << 20;
  m = uvec2(0u);
  for (int digit = 0; digit < 7; ++digit) {
    rest <<= 8;
    m = uvec2((m.x << 8) | (rest / divisor), (m.y << 8) | (m.x >> 24));
    rest %= divisor;
  }
  if (2u * rest > divisor) m.y += uint((m.x += 1u) == 0u);
}

// |x / scale| in fixed point; false: 2^33 or more.
bool divided(uint x, uvec2 m, int e, out uvec3 v) {
  int exponent;
  const uint a = normalized(x & 0x7fffffffu, exponent);
  uint high, middle, low, carry, over;
  umulExtended(a, m.x, carry, low);
  umulExtended(a, m.y, high, middle);
  middle = uaddCarry(middle, carry, over);
  const uvec3 product = uvec3(low, middle, high + over);
  const int drop = bits_of(product) - 53, power = drop + exponent - 150 + e;
  v = uvec3(0u);
  if (power + 52 >= 33) return false;
  // Below a quarter, nothing remains after the sum is rounded.
  if (power + 52 >= -2) v = shift_left(round_off(product, drop), power + kFraction);
  return true;
}

int quantized(float x, float scale, int zero) {
  const uint bits = floatBitsToUint(x), divisor = floatBitsToUint(scale);
  const uint size = bits & 0x7fffffffu, scale_size = divisor & 0x7fffffffu;
  if (size > kInfBits || scale_size > kInfBits || (size == kInfBits && scale_size == kInfBits)) return kNotANumber;
  if (size == 0u && scale_size == 0u) return kNotANumber;
  const bool negative = ((bits ^ divisor) & 0x80000000u) != 0u;
  const int end = negative ? params.low : params.high;
  if (size == kInfBits || scale_size == 0u) return end;
  uvec3 v = uvec3(0u);
  if (size != 0u && scale_size != kInfBits) {
    uvec2 m;
    int e;
    reciprocal_of(divisor, m, e);
    if (!divided(bits, m, e, v)) return end;
  }
  const uvec3 point = shift_left(uvec3(zero < 0 ? 0u - uint(zero) : uint(zero), 0u, 0u), kFraction);
  const bool down = zero < 0;
  uvec3 sum = add(v, down == negative ? point : negated(point));
  bool below = negative;
  if (down != negative && less(v, point)) {
    sum = negated(sum);
    below = down;
  }
  const int drop = max(bits_of(sum) - 53, 0);
  sum = round_off(shift_left(round_off(sum, drop), drop), kFraction);
  const bool wide = sum.y != 0u || sum.x > 0x7fffffffu;
  const int whole = wide ? (below ? int(0x80000000) : 0x7fffffff) : below ? -int(sum.x) : int(sum.x);
  return clamp(whole, params.low, params.high);
}

// The result for the `live` elements from `first` on.
ivec4 quantized_vec4(vec4 x, uint first, uint live) {
  ivec4 v = ivec4(0);
  for (uint i = 0u; i < live; ++i) {
    const uint b = block_of(first + i);
    v[i] = quantized(x[i], scale_of(b), whole_zero_of(b));
  }
  return v;
}

void main() {
#if defined(STORAGE_texture3d)
  if (item() >= params.texels) return;
  const Texel here = texel(item(), params.columns, params.height);
  PUT4(OUT, out_, here.at, quantized_vec4(FETCH4(IN, x_, here.at), here.first, here.live));
#else
  const uint q = item(), first = 4u * q;
  if (first < params.count) STORE4(OUT, out_, q, quantized_vec4(LOAD4(IN, x_, q), first, min(4u, params.count - first)));
#endif
}
