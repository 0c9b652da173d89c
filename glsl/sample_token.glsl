// SPDX-License-Identifier: Apache-2.0
// The first of three kernels that draw a token from a row of logits: the penalty for repeated tokens, and the largest logit, which is
// the token where the temperature is 0. A logit becomes a key that rises with it (sampling/options.glslh); keys after the last token
// of a row are 0. Repeated are the tokens at the last repeat_last positions before the new one: the last `step` of them are in made,
// those before in text. It also clears the words in which the next kernels count, and leaves the number of the step there, which the
// last kernel writes over. A workgroup has a part of a row; the last one to arrive, by a ticket, compares the parts, and leaves the
// ticket as it was: 0.
// Bindings: 0 keys, 1 peaks {key, id} of parts, 2 words, 3 tickets, 4 status, 5 options, 6 counts, 7 logits, 8 text, 9 made,
// 10 position, 11 step.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#define OPTIONS_BINDING 5
#define STATUS_BINDING 4
#include "core/launch.glslh"
#include "core/status.glslh"
#include "core/types.glslh"
#include "quant/quantize.glslh"
#include "sampling/best.glslh"
#include "sampling/options.glslh"

layout(constant_id = 1) const bool WHOLE_VEC4 = false;  // rows of logits are whole vec4 groups

layout(set = 0, binding = 0) writeonly buffer Keys { uvec4 keys_[]; };
layout(set = 0, binding = 1) coherent buffer Peaks { uvec2 peaks_[]; };
layout(set = 0, binding = 2) writeonly buffer Words { uint words_[]; };
layout(set = 0, binding = 3) coherent buffer Tickets { uint tickets_[]; };
layout(set = 0, binding = 7) readonly buffer Logits { WORD(DTYPE) logits_[]; };
layout(set = 0, binding = 8) readonly buffer Text { WORD(i32) text_[]; };
layout(set = 0, binding = 9) readonly buffer Made { WORD(i32) made_[]; };
layout(set = 0, binding = 10) readonly buffer Position { WORD(i32) position_[]; };
layout(set = 0, binding = 11) readonly buffer Step { WORD(i32) step_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint first;   // row of this dispatch, which has at most SAMPLE_ROWS
  uint tokens;  // of the vocabulary
  uint parts;   // of a row
  uint text;    // tokens of a row of text
  uint made;    // columns of it
  uint call;
} params;

shared uint repeated_[SAMPLE_PART / 32u];  // a bit for each token of the part
shared uint ticket_;

void mark_repeated(uint row, uint part) {
  for (uint i = lane(); i < SAMPLE_PART / 32u; i += LANES) repeated_[i] = 0u;
  barrier();
  const int position = LOAD1(i32, position_, row) + 1, made = LOAD1(i32, step_, 0);
  const int from_text = position - made;
  const bool reports = part == 0u && lane() == 0u;
  if (made < 0 || made > int(params.made)) {
    if (reports) report_index(params.call, 0u, made, int(params.made) + 1);
  } else if (from_text < 0 || from_text > int(params.text)) {
    if (reports) report_index(params.call, row, position, int(params.text) + made + 1);
  } else {
    const int first = max(position - int(counts_[row].y), 0);
    for (int i = first + int(lane()); i < position; i += int(LANES)) {
      const int id = i < from_text ? LOAD1(i32, text_, row * params.text + uint(i))
                                   : LOAD1(i32, made_, row * params.made + uint(i - from_text));
      if (id < 0 || id >= int(params.tokens)) {
        if (part == 0u) report_index(params.call, uint(i), id, int(params.tokens));
      } else if (uint(id) / SAMPLE_PART == part) {
        const uint bit = uint(id) % SAMPLE_PART;
        atomicOr(repeated_[bit / 32u], 1u << (bit % 32u));
      }
    }
  }
  barrier();
}

// Position of the report: in options, then in counts.
void check_options(uint row) {
  const uint bad = bad_option(options_[row], counts_[row]);
  if (bad != ALL_IN_RANGE) report(params.call, bad < 4u ? 4u * row + bad : 4u * (params.rows + row) + bad - 4u, STATUS_BAD_OPTION);
}

// After all parts of the row have stored their peaks.
void finish(uint row) {
  uvec2 largest = NO_TOKEN;
  for (uint i = lane(); i < params.parts; i += LANES) largest = better(largest, peaks_[row * params.parts + i]);
  largest = workgroup_best(largest);
  if (lane() != 0u) return;
  words_[row * SAMPLE_WORDS + SAMPLE_PEAK] = largest.x;
  words_[row * SAMPLE_WORDS + SAMPLE_STEP] = step_[0].x;
  if (largest.x == 0u) report(params.call, row, STATUS_NO_NUMBER);
  words_[row * SAMPLE_WORDS + SAMPLE_TOKEN] = min(largest.y, params.tokens - 1u);
}

void main() {
  const uint ticket = group() / params.parts, row = params.first + ticket, part = group() % params.parts;
  if (ticket >= SAMPLE_ROWS || row >= params.rows) return;
  for (uint i = part * LANES + lane(); i < SAMPLE_WORDS; i += params.parts * LANES) words_[row * SAMPLE_WORDS + i] = 0u;
  const float penalty = uintBitsToFloat(options_[row].w);
  const bool penalized = options_[row].w != 0x3f800000u && counts_[row].y != 0u;
  if (penalized) mark_repeated(row, part);
  if (part == 0u && lane() == 0u) check_options(row);

  const uint vec4s = (params.tokens + 3u) / 4u;
  uvec2 mine = NO_TOKEN;
  for (uint i = lane(); i < SAMPLE_PART / 4u; i += LANES) {
    const uint q = part * (SAMPLE_PART / 4u) + i;
    if (q >= vec4s) break;
    vec4 x;
    if (WHOLE_VEC4) {
      x = LOAD4(DTYPE, logits_, row * vec4s + q);
    } else {
      for (uint k = 0u; k < 4u; ++k) x[k] = LOAD1(DTYPE, logits_, row * params.tokens + min(4u * q + k, params.tokens - 1u));
    }
    const uint repeated = penalized ? repeated_[i / 8u] >> (4u * (i % 8u)) : 0u;
    [[dont_unroll]] for (uint k = 0u; repeated != 0u && k < 4u; ++k) {  // much code, of few tokens
      const float other = floatBitsToInt(x.x) > 0 ? divide(x.x, penalty) : multiply(x.x, penalty);
      x = vec4(x.yzw, (repeated >> k & 1u) != 0u ? other : x.x);
    }
    uvec4 keys;
    for (uint k = 0u; k < 4u; ++k) {
      keys[k] = 4u * q + k < params.tokens ? key_of(x[k]) : 0u;
      mine = better(mine, uvec2(keys[k], 4u * q + k));
    }
    keys_[row * vec4s + q] = keys;
  }
  mine = workgroup_best(mine);
  if (lane() == 0u) peaks_[row * params.parts + part] = mine;
  memoryBarrierBuffer();
  barrier();
  if (lane() == 0u) ticket_ = atomicAdd(tickets_[ticket], 1u);
  barrier();
  if (ticket_ != params.parts - 1u) return;
  if (lane() == 0u) atomicExchange(tickets_[ticket], 0u);
  memoryBarrierBuffer();
  finish(row);
}
