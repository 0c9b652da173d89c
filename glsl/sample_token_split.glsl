// SPDX-License-Identifier: Apache-2.0
// Third of the kernels of sample_token.glsl: finds the bins in which top_k and top_p cut the row. The best token of the bins before
// is found here, a part of the row in a workgroup; the tokens in bins with a cut, {key, id}, are listed in any order for
// sample_token_draw.glsl. How much weight top_p leaves depends on where top_k cuts within its bin: there may be several such bins.
// Bindings: 0 list, 1 best tokens {score, id} of parts, 2 words, 3 keys, 4 peaks, 5 options, 6 counts, 7 position.
#version 450
#extension GL_GOOGLE_include_directive : require
#define KEYS_BINDING 3
#define OPTIONS_BINDING 5
#include "core/launch.glslh"
#include "sampling/options.glslh"
layout(set = 0, binding = 0) writeonly buffer List { uvec2 list_[]; };
layout(set = 0, binding = 1) writeonly buffer Bests { uvec2 bests_[]; };
layout(set = 0, binding = 2) buffer Words { uint words_[]; };
layout(set = 0, binding = 7) readonly buffer Position { WORD(i32) position_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint tokens;  // of the vocabulary
  uint parts;   // of a row
} params;
#include "sampling/row.glslh"
#include "sampling/sum.glslh"

Sum bin_sum(uint at) { return Sum(words_[at], LONG(words_[at + 1u], words_[at + 2u])); }
#define SUM_AT(bin) bin_sum(group() / params.parts * SAMPLE_WORDS + 3u * (bin))
#include "sampling/cut.glslh"
#include "sampling/sums.glslh"

Cut find_cut(Drawing d) {
  Cut cut = Cut(SAMPLE_BINS, SAMPLE_BINS, SAMPLE_BINS, NOTHING, LONG(0u), LONG(0u));
  const bool at_k = cuts_at_k(d, params.tokens);
  if (!d.has_top_p && !at_k) return cut;
  scan(SAMPLE_BINS);
  cut.all = total().weight;
  LONG most = cut.all, least = cut.all;  // that top_k leaves
  if (at_k) {
    const Reached k = reach(SAMPLE_BINS, LONG(d.top_k, 0u), false);
    if (k.found) {
      cut.k_bin = k.bin;
      cut.before_k = k.before;
      least = k.before.weight;
      most = plus(k.before.weight, k.inside.weight);
    }
  }
  cut.first = cut.last = cut.k_bin;
  cut.before_first = cut.before_k.weight;
  if (d.has_top_p) {
    const Reached p = reach(SAMPLE_BINS, share(least, d.top_p), true);
    cut.first = p.bin;
    cut.before_first = p.before.weight;
    cut.last = reach(SAMPLE_BINS, share(most, d.top_p), true).bin;
  }
  if (cut.first > last_bin(d)) cut.first = cut.last = cut.k_bin = SAMPLE_BINS;
  return cut;
}

shared uint listed_;
shared uint place_;

void main() {
  const uint row = group() / params.parts, part = group() % params.parts;
  if (row >= params.rows) return;
  const Drawing d = drawing(row);
  if (d.greedy) return;
  if (lane() == 0u) listed_ = 0u;
  const uint most = peak(row).x, position = uint(LOAD1(i32, position_, row));
  const Cut cut = find_cut(d);

  uvec2 mine = NO_TOKEN;
  uint count = 0u;
  for (uint i = lane(); i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= ROW_VEC4S) break;
    const uvec4 keys = keys_[row * ROW_VEC4S + q];
    for (uint k = 0u; k < 4u; ++k) {
      if (keys[k] == 0u) continue;
      const Token t = token(keys[k], most, d);
      const uint bin = bin_of(t.octaves, d);
      if (bin < cut.first) {
        if (may_win(t, d)) mine = better(mine, uvec2(score_of(4u * q + k, t, d, position), 4u * q + k));
      } else if (bin <= cut.last || bin == cut.k_bin) {
        ++count;
      }
    }
  }
  uint place = 0u;
  if (count != 0u) place = atomicAdd(listed_, count);
  mine = workgroup_best(mine);
  if (lane() == 0u) {
    bests_[row * params.parts + part] = mine;
    if (part == 0u) STORE_CUT(words_, row * SAMPLE_WORDS + SAMPLE_CUT, cut);
    if (listed_ != 0u) place_ = atomicAdd(words_[row * SAMPLE_WORDS + SAMPLE_LISTED], listed_);
  }
  barrier();
  if (count == 0u) return;
  place += place_ + row * 4u * ROW_VEC4S;
  for (uint i = lane(); i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= ROW_VEC4S) break;
    const uvec4 keys = keys_[row * ROW_VEC4S + q];
    for (uint k = 0u; k < 4u; ++k) {
      if (keys[k] == 0u) continue;
      const uint bin = bin_of(token(keys[k], most, d).octaves, d);
      if (bin >= cut.first && (bin <= cut.last || bin == cut.k_bin)) list_[place++] = uvec2(keys[k], 4u * q + k);
    }
  }
}
