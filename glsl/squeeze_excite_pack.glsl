// SPDX-License-Identifier: Apache-2.0
// Packs a weight [rows, columns] and its bias for squeeze_excite.glsl. A word of 16 bytes has 8 (of 32 bits 4) columns of a row, 0
// past the last; it stands beside those of the next rows, so that lanes with neighbouring rows read neighbouring words. Then
// comes the bias, four rows a word. One invocation makes a word.
// Bindings: 0 out, 1 weight, 2 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant BITS b32 b16
#include "core/bits.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"

layout(constant_id = 1) const bool BIAS = true;  // else it is 0

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) readonly buffer Weight { WORD(BITS) weight_[]; };
layout(set = 0, binding = 2) readonly buffer Bias { WORD(b32) bias_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint columns;
  uint words;  // of the weight
  uint count;  // with the bias
} params;

uint weight_at(uint row, uint column) {
  return column < params.columns ? LOAD1(BITS, weight_, row * params.columns + column) : 0u;
}

uint bias_at(uint row) { return BIAS && row < params.rows ? LOAD1(b32, bias_, row) : 0u; }

void main() {
  uint rest = item();
  if (rest >= params.count) return;
  const bool is_bias = rest >= params.words;
  const uint first = is_bias ? (rest - params.words) * 4u : take(rest, params.rows);
  uvec4 word;
  for (uint i = 0u; i < 4u; ++i) {
#if defined(BITS_b16)
    const uint column = rest * 8u + 2u * i;
    word[i] = is_bias ? bias_at(first + i) : weight_at(first, column) | weight_at(first, column + 1u) << 16;
#else
    word[i] = is_bias ? bias_at(first + i) : weight_at(first, rest * 4u + i);
#endif
  }
  out_[item()] = word;
}
