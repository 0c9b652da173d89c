// SPDX-License-Identifier: Apache-2.0
// Last of the kernels of sample_token.glsl. Of rows with a temperature: finds the bins in which top_k and top_p cut the row. A
// workgroup has a part of the row: the best token of the bins before is found, the tokens in bins with a cut, {key, id}, are listed in
// any order. The last workgroup to arrive cuts the list where top_k and top_p do; the largest score up to there, and of the parts,
// is the token. Of all rows: puts the token in its column; token, position and step become those of the next step.
// Bindings: 0 made, 1 token, 2 position, 3 step, which may have the memory of those before; 4 list, 5 best tokens {score, id} of
// parts, 6 words, 7 status, 8 to 11 made, token, position, step before, 12 keys, 13 options, 14 counts.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define KEYS_BINDING 12
#define OPTIONS_BINDING 13
#define STATUS_BINDING 7
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/status.glslh"
#include "sampling/best.glslh"
#include "sampling/options.glslh"
layout(set = 0, binding = 0) writeonly buffer NewMade { WORD(i32) new_made_[]; };
layout(set = 0, binding = 1) writeonly buffer NewToken { WORD(i32) new_token_[]; };
layout(set = 0, binding = 2) writeonly buffer NewPosition { WORD(i32) new_position_[]; };
layout(set = 0, binding = 3) writeonly buffer NewStep { WORD(i32) new_step_[]; };
layout(set = 0, binding = 4) coherent buffer List { uvec2 list_[]; };
layout(set = 0, binding = 5) coherent buffer Bests { uvec2 bests_[]; };
layout(set = 0, binding = 6) coherent buffer Words { uint words_[]; };
layout(set = 0, binding = 8) readonly buffer Made { WORD(i32) made_[]; };
layout(set = 0, binding = 9) readonly buffer OldToken { WORD(i32) old_token_[]; };  // not read
layout(set = 0, binding = 10) readonly buffer Position { WORD(i32) position_[]; };
layout(set = 0, binding = 11) readonly buffer OldStep { WORD(i32) old_step_[]; };  // not read: another row may have written it
layout(push_constant) uniform Params {
  uint rows;
  uint tokens;  // of the vocabulary
  uint parts;   // of a row
  uint made;    // columns of it
  uint call;
} params;
#include "sampling/row.glslh"
#include "sampling/sum.glslh"

// The sums are of bins first, then of digits.
const uint kDigits = 256u;
shared uint digits_[3u * kDigits];
bool digits_on_ = false;

Sum sum_at(uint i) {
  if (digits_on_) return Sum(digits_[3u * i], LONG(digits_[3u * i + 1u], digits_[3u * i + 2u]));
  const uint at = group() / params.parts * SAMPLE_WORDS + 3u * i;
  return Sum(words_[at], LONG(words_[at + 1u], words_[at + 2u]));
}
#define SUM_AT(i) sum_at(i)
#include "sampling/sums.glslh"
#include "sampling/cut.glslh"

// Read again where they are needed: to hold them throughout takes more registers than some GPUs have.
shared Drawing drawing_;
shared Cut cut_;
#include "sampling/last_place.glslh"

shared uint listed_;
shared uint place_;  // in the list, then a ticket, then the token

// Of a part: lists its tokens in bins with a cut, and returns the best one of those before.
uvec2 split(uint row, uint part, Drawing d, uint most, Cut cut) {
  if (lane() == 0u) listed_ = 0u;
  const uint position = uint(LOAD1(i32, position_, row)) + 1u;
  barrier();
  uvec2 mine = NO_TOKEN;
  uint count = 0u;
  for (uint i = lane(); i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= ROW_VEC4S) break;
    uvec4 keys = keys_[row * ROW_VEC4S + q];
    [[dont_unroll]] for (uint k = 0u; k < 4u; ++k) {
      const uint key = keys.x;
      keys = keys.yzwx;
      if (key == 0u) continue;
      const Token t = token(key, most, d);
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
  if (lane() == 0u && listed_ != 0u) place_ = atomicAdd(words_[row * SAMPLE_WORDS + SAMPLE_LISTED], listed_);
  barrier();
  place += place_ + row * 4u * ROW_VEC4S;
  for (uint i = lane(); count != 0u && i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= ROW_VEC4S) break;
    uvec4 keys = keys_[row * ROW_VEC4S + q];
    [[dont_unroll]] for (uint k = 0u; k < 4u; ++k) {
      const uint key = keys.x;
      keys = keys.yzwx;
      if (key == 0u) continue;
      const uint bin = bin_of(token(key, most, d).octaves, d);
      if (bin >= cut.first && (bin <= cut.last || bin == cut.k_bin)) list_[place++] = uvec2(key, 4u * q + k);
    }
  }
  return mine;
}

// The token, when all parts have been split.
uvec2 draw(uint row, uint most) {
  uvec2 mine = NO_TOKEN;
  // An atomic, as other workgroups added to it: a CPU driver takes a load out of order.
  if (lane() == 0u) listed_ = atomicOr(words_[row * SAMPLE_WORDS + SAMPLE_LISTED], 0u);
  barrier();
  const Row r = Row(row, most, listed_, drawing_.bin_shift);
  if (r.listed != 0u) {
    const uvec2 end = last_place(r);
    const Drawing d = drawing_;
    const uint position = uint(LOAD1(i32, position_, row)) + 1u;
    for (uint i = lane(); i < r.listed; i += LANES) {
      const uvec2 each = listed(r, i);
      const Token t = token(each.x, most, d);
      if (after(place_of(r, each), end) || !may_win(t, d)) continue;
      mine = better(mine, uvec2(score_of(each.y, t, d, position), each.y));
    }
  }
  for (uint i = lane(); i < params.parts; i += LANES) mine = better(mine, bests_[row * params.parts + i]);
  return workgroup_best(mine);
}

// Leaves the token to the next step.
void leave(uint row, uint token) {
  const int step = int(words_[row * SAMPLE_WORDS + SAMPLE_STEP]);
  for (uint column = lane(); column < params.made; column += LANES) {
    const uint i = row * params.made + column;
    STORE1(i32, new_made_, i, int(column) == step ? int(token) : LOAD1(i32, made_, i));
  }
  if (lane() != 0u) return;
  STORE1(i32, new_token_, row, int(token));
  STORE1(i32, new_position_, row, LOAD1(i32, position_, row) + 1);
  if (row != 0u) return;
  if (step < 0 || step >= int(params.made)) report_index(params.call, 0u, step, int(params.made));
  STORE1(i32, new_step_, 0u, step + 1);
}

void main() {
  const uint row = group() / params.parts, part = group() % params.parts;
  if (row >= params.rows) return;
  const Drawing d = drawing(row);
  if (d.greedy) {  // sample_token.glsl has chosen
    if (part == 0u) leave(row, words_[row * SAMPLE_WORDS + SAMPLE_TOKEN]);
    return;
  }
  const uint most = peak(row);
  const Cut cut = find_cut(d);
  if (lane() == 0u) {
    drawing_ = d;
    cut_ = cut;
  }
  uvec2 mine = split(row, part, d, most, cut);  // which has barriers
  if (lane() == 0u) bests_[row * params.parts + part] = mine;
  memoryBarrierBuffer();
  barrier();
  if (lane() == 0u) place_ = atomicAdd(words_[row * SAMPLE_WORDS + SAMPLE_DONE], 1u);
  barrier();
  if (place_ != params.parts - 1u) return;
  memoryBarrierBuffer();
  mine = draw(row, most);
  if (lane() == 0u) place_ = min(mine.y, params.tokens - 1u);
  barrier();
  leave(row, place_);
}
