// SPDX-License-Identifier: Apache-2.0
// out[n] = gate(W2 act(W1 x[n] + b1) + b2) of rows of pooled channels; sums are fp32. A workgroup computes all hidden values of its
// row, several lanes each, and keeps them in shared memory; then a part of the row's outputs, a lane each. Workgroups of one row
// all compute its hidden values: where units are idle, that is sooner done than a second dispatch begins. A lane reads AHEAD
// words of a weight before it needs the first: with few lanes nothing else hides the way to memory.
// Bindings: 0 out, 1 x, 2 W1 and b1, 3 W2 and b2, packed by squeeze_excite_pack.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#pragma choice GATE sigmoid hardsigmoid
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/activation.glslh"

layout(constant_id = 1) const uint ACT = ACT_RELU;
layout(constant_id = 2) const uint GATE = 0u;
layout(constant_id = 3) const bool WHOLE = true;        // rows of x are whole vec4 groups
layout(constant_id = 4) const uint HIDDEN_VEC4S = 16u;  // as many as hold the hidden values and the padding of their last word
layout(constant_id = 5) const uint AHEAD = 4u;

layout(set = 0, binding = 0) buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(set = 0, binding = 2) readonly buffer Squeeze { uvec4 squeeze_[]; };
layout(set = 0, binding = 3) readonly buffer Excite { uvec4 excite_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint channels;
  uint hidden;
  uint parts;  // workgroups of a row
  uint span;   // outputs of a workgroup, whole vec4 groups of the row
} params;

#include "core/store.glslh"

shared float sums_[gl_WorkGroupSize.x];
shared vec4 hidden_[HIDDEN_VEC4S];

#if defined(DTYPE_f16)
const uint VEC4S = 2u;  // that a word holds
vec4 weights(uvec4 word, uint i) { return unpack_f16(i == 0u ? word.xy : word.zw); }
#else
const uint VEC4S = 1u;
vec4 weights(uvec4 word, uint i) { return unpack_f32(word); }
#endif

uint words_of(uint columns) { return (columns + 4u * VEC4S - 1u) / (4u * VEC4S); }

// Channels 4q .. 4q + 3 of a row of x, 0 past the last.
vec4 x_at(uint row, uint q) {
  const uint first = 4u * q, left = first < params.channels ? params.channels - first : 0u, at = row * params.channels + first;
  if (WHOLE) return left != 0u ? LOAD4(DTYPE, in_, at >> 2) : vec4(0);
  vec4 x = vec4(0);
  for (uint k = 0u; k < min(left, 4u); ++k) x[k] = LOAD1(DTYPE, in_, at + k);
  return x;
}

// Of hidden value h: the sum over words piece, piece + pieces, ...
float squeezed(uint row, uint h, uint piece, uint pieces) {
  const uint words = words_of(params.channels);
  vec4 sum = vec4(0);
  for (uint first = piece; first < words; first += AHEAD * pieces) {
    uvec4 word[AHEAD];
    [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
      const uint at = first + i * pieces;
      word[i] = squeeze_[min(at, words - 1u) * params.hidden + h];
      if (at >= words) word[i] = uvec4(0);
    }
    [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
      for (uint v = 0u; v < VEC4S; ++v) sum += weights(word[i], v) * x_at(row, VEC4S * (first + i * pieces) + v);
    }
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

float excited(uint c) {
  const uint words = words_of(params.hidden);
  vec4 sum = vec4(0);
  for (uint first = 0u; first < words; first += AHEAD) {
    uvec4 word[AHEAD];
    [[unroll]] for (uint i = 0u; i < AHEAD; ++i) word[i] = excite_[min(first + i, words - 1u) * params.channels + c];
    [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
      for (uint v = 0u; v < VEC4S && first + i < words; ++v) sum += weights(word[i], v) * hidden_[VEC4S * (first + i) + v];
    }
  }
  return (sum.x + sum.y) + (sum.z + sum.w) + uintBitsToFloat(excite_[words * params.channels + (c >> 2)][c & 3u]);
}

void main() {
  const uint row = group() / params.parts, part = group() % params.parts;
  if (row >= params.rows) return;  // the whole workgroup
  const uint width = min(params.hidden, LANES), pieces = LANES / width, piece = lane() / width;
  const uint past = params.hidden + lane();  // the last word's padding
  if (past < words_of(params.hidden) * 4u * VEC4S) hidden_[past >> 2][past & 3u] = 0.0;
  for (uint first = 0u; first < params.hidden; first += width) {
    const uint h = first + lane() % width;
    sums_[lane()] = h < params.hidden && piece < pieces ? squeezed(row, h, piece, pieces) : 0.0;
    barrier();
    if (piece == 0u && h < params.hidden) {
      float sum = uintBitsToFloat(squeeze_[words_of(params.channels) * params.hidden + (h >> 2)][h & 3u]);
      for (uint i = 0u; i < pieces; ++i) sum += sums_[i * width + lane()];
      hidden_[h >> 2][h & 3u] = activate(vec4(sum), ACT).x;
    }
    barrier();
  }
  const uint end = min((part + 1u) * params.span, params.channels);
  for (uint first = part * params.span; first < end; first += LANES) {
    const uint c = first + lane(), group4 = first + 4u * lane();
    sums_[lane()] = c < end ? excited(c) : 0.0;
    barrier();
    if (4u * lane() < LANES && group4 < end) {
      const uint from = 4u * lane(), at = row * params.channels + group4;
      const vec4 sum = vec4(sums_[from], sums_[from + 1u], sums_[from + 2u], sums_[from + 3u]);
      const vec4 y = GATE == GATE_sigmoid ? sigmoid(sum) : activate(sum, ACT_HARDSIGMOID);
      if (WHOLE) {
        STORE4(DTYPE, out_, at >> 2, y);
      } else {
        store_some(at, min(end - group4, 4u), y);
      }
    }
    barrier();
  }
}
