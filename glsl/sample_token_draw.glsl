// SPDX-License-Identifier: Apache-2.0
// Last of the kernels of sample_token.glsl: the token of a row, by one workgroup. Among the listed tokens it finds the last one
// that top_k and top_p leave, by one digit of its place at a time; the largest score of those up to it, and of the parts, wins.
// A place is {largest key - key, id}: it rises along the order in which tokens are kept.
// Bindings: 0 out, 1 status, 2 keys, 3 peaks, 4 options, 5 counts, 6 list, 7 best tokens of parts, 8 words, 9 position.
#version 450
#extension GL_GOOGLE_include_directive : require
#define STATUS_BINDING 1
#define KEYS_BINDING 2
#define OPTIONS_BINDING 4
#include "core/launch.glslh"
#include "core/status.glslh"
#include "sampling/options.glslh"
layout(set = 0, binding = 0) writeonly buffer Out { WORD(i32) out_[]; };
layout(set = 0, binding = 6) readonly buffer List { uvec2 list_[]; };
layout(set = 0, binding = 7) readonly buffer Bests { uvec2 bests_[]; };
layout(set = 0, binding = 8) readonly buffer Words { uint words_[]; };
layout(set = 0, binding = 9) readonly buffer Position { WORD(i32) position_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint tokens;  // of the vocabulary
  uint parts;   // of a row
  uint call;
} params;
#include "sampling/cut.glslh"
#include "sampling/row.glslh"

const uint kDigits = 256u;
shared uint digits_[3u * kDigits];
#define SUM_AT(i) Sum(digits_[3u * (i)], LONG(digits_[3u * (i) + 1u], digits_[3u * (i) + 2u]))
#include "sampling/sums.glslh"

const uvec2 kAll = uvec2(0xffffffffu);

struct Row {
  uint row;
  uint most;    // the largest key
  uint listed;  // tokens in the list
  Drawing d;
};

bool after(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }
uvec2 listed(Row r, uint i) { return list_[r.row * 4u * ROW_VEC4S + i]; }
uvec2 place_of(Row r, uvec2 key_and_id) { return uvec2(r.most - key_and_id.x, key_and_id.y); }

struct Found {
  uvec2 place;
  Sum upto;  // of the listed tokens of these bins up to there
};

// The first place at which the listed tokens of bins `first` to `last`, up to `end`, reach the target.
Found find_place(Row r, uint first, uint last, uvec2 end, LONG target, bool by_weight) {
  uvec2 prefix = uvec2(0u), mask = uvec2(0u);  // the digits of the place so far
  Sum before = NOTHING;
  for (uint digit = 0u; digit < 8u; ++digit) {
    const uint word = digit / 4u, shift = 24u - 8u * (digit % 4u);
    const uvec2 known = mask;
    mask[word] |= 0xffu << shift;
    if (word == 1u && (params.tokens - 1u) >> shift == 0u) continue;  // it is 0 in all ids
    for (uint i = lane(); i < 3u * kDigits; i += LANES) digits_[i] = 0u;
    barrier();
    for (uint i = lane(); i < r.listed; i += LANES) {
      const uvec2 each = listed(r, i), place = place_of(r, each);
      if (((place ^ prefix) & known) != uvec2(0u) || after(place, end)) continue;
      const uint octaves = token(each.x, r.most, r.d).octaves, bin = bin_of(octaves, r.d);
      if (bin < first || bin > last) continue;
      ADD_TO(digits_, 3u * ((place[word] >> shift) & 0xffu), octaves);
    }
    barrier();
    scan(kDigits);
    const Reached reached = reach(kDigits, minus(target, measure(before, by_weight)), by_weight);
    if (!reached.found) return Found(end, plus(before, total()));
    prefix[word] |= reached.bin << shift;
    before = plus(before, reached.before);
    const Sum upto = plus(before, reached.inside);
    if (reached.inside.count == 1u || measure(upto, by_weight) == target)  // all of these stay
      return Found(uvec2(prefix.x | ~mask.x, prefix.y | ~mask.y), upto);
  }
  return Found(prefix, before);  // not reached: the last digit has one token
}

// The last place that stays.
uvec2 last_place(Row r) {
  const Cut cut = LOAD_CUT(words_, r.row * SAMPLE_WORDS + SAMPLE_CUT);
  uvec2 end = kAll;
  LONG all = cut.all;
  if (cut.k_bin < SAMPLE_BINS) {
    const LONG left = LONG(r.d.top_k - cut.before_k.count, 0u);
    const Found found = find_place(r, cut.k_bin, cut.k_bin, end, left, false);
    end = found.place;
    all = plus(cut.before_k.weight, found.upto.weight);
  }
  if (!r.d.has_top_p) return end;
  const LONG target = minus(share(all, r.d.top_p), cut.before_first);
  return find_place(r, cut.first, cut.last, end, target, true).place;
}

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uvec2 largest = peak(row);
  const Drawing d = drawing(row);
  uvec2 mine = NO_TOKEN;
  if (d.greedy) {
    mine = largest;
  } else {
    for (uint i = lane(); i < params.parts; i += LANES) mine = better(mine, bests_[row * params.parts + i]);
    const Row r = Row(row, largest.x, words_[row * SAMPLE_WORDS + SAMPLE_LISTED], d);
    if (r.listed != 0u) {
      const uvec2 end = last_place(r);
      const uint position = uint(LOAD1(i32, position_, row));
      for (uint i = lane(); i < r.listed; i += LANES) {
        const uvec2 each = listed(r, i);
        const Token t = token(each.x, r.most, d);
        if (after(place_of(r, each), end) || !may_win(t, d)) continue;
        mine = better(mine, uvec2(score_of(each.y, t, d, position), each.y));
      }
    }
    mine = workgroup_best(mine);
  }
  if (lane() != 0u) return;
  if (largest.x == 0u) report(params.call, row, STATUS_NO_NUMBER);
  STORE1(i32, out_, row, min(mine.y, params.tokens - 1u));
}
