// SPDX-License-Identifier: Apache-2.0
// Second of the kernels of sample_token.glsl: counts the tokens of a row, and adds up their weights 2^-o, in bins by o, the octaves
// that they are below the largest; o has a bin's width of 2^-4 or more. Nothing to do where neither top_k nor top_p is set.
// Bindings: 0 words, 1 keys, 2 options, 3 counts.
#version 450
#extension GL_GOOGLE_include_directive : require
#define KEYS_BINDING 1
#define OPTIONS_BINDING 2
#include "core/launch.glslh"
#include "sampling/options.glslh"
layout(set = 0, binding = 0) buffer Words { uint words_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint tokens;  // of the vocabulary
  uint parts;   // of a row
} params;
#include "sampling/row.glslh"
#include "sampling/sum.glslh"

shared uint bins_[3u * SAMPLE_BINS];

void main() {
  const uint row = group() / params.parts, part = group() % params.parts;
  if (row >= params.rows) return;
  const Drawing d = drawing(row);
  if (d.greedy || !(d.has_top_p || cuts_at_k(d, params.tokens))) return;
  for (uint i = lane(); i < 3u * SAMPLE_BINS; i += LANES) bins_[i] = 0u;
  const uint most = peak(row);
  barrier();

  for (uint i = lane(); i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= ROW_VEC4S) break;
    const uvec4 keys = keys_[row * ROW_VEC4S + q];
    for (uint k = 0u; k < 4u; ++k) {
      if (keys[k] == 0u) continue;
      const uint octaves = token(keys[k], most, d).octaves;
      ADD_TO(bins_, 3u * bin_of(octaves, d), octaves);
    }
  }
  barrier();
  for (uint bin = lane(); bin < SAMPLE_BINS; bin += LANES) {
    const Sum sum = Sum(bins_[3u * bin], LONG(bins_[3u * bin + 1u], bins_[3u * bin + 2u]));
    if (sum.count != 0u) ADD_SUM_TO(words_, row * SAMPLE_WORDS + 3u * bin, sum);
  }
}
