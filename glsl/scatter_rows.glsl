// SPDX-License-Identifier: Apache-2.0
// scatter_add of f32 by rows: out[r, j] = self[r, j] + src[r, p] for every p with index[r, p] = j, added one after the other in the
// order of p, as ops/scatter.cpp has it. A workgroup has a row, and takes LANES * SCATTER_ROWS_EACH of its indices at a time: counts how many
// there are of each, sums the counts to where the list of each begins, and puts every src into its list. The atomics of the count
// leave a list in any order, so an element of the output looks for the order of its own: up to four are sorted in registers, of
// some it looks for the next one each time, and where they are many it goes through the indices again. An index out of range is
// reported and adds nothing.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 pairs (of the other kernel), 5 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint EXTENT = 1u;  // of a row of the output
layout(constant_id = 2) const bool CPU = false;  // which takes a load of what others have written out of order, an atomic not

layout(set = 0, binding = 0) buffer Out { uvec4 out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { uvec4 self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { uvec4 index_[]; };
layout(set = 0, binding = 4) readonly buffer Pairs { uvec2 pairs_[]; };
layout(set = 0, binding = 5) readonly buffer Src { uvec4 src_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint indices;  // of a row
  uint terms;    // of a row of src, of which the first `indices` count
  uint inner;    // distance between neighbouring elements of a row
  uint call;
} params;

const uint kNobody = 0xffffffffu;
const uint kWords = (EXTENT + 1u) / 2u;
const uint kFew = 4u;
shared uint starts_[kWords];  // two elements a word: how many terms each has, then where its own begin
shared uvec2 list_[SCATTER_ROWS_EACH * gl_WorkGroupSize.x];  // place among the indices, bits of the term
shared uint totals_[2u * gl_WorkGroupSize.x];

uint word_of(uint w) { return CPU ? atomicOr(starts_[w], 0u) : starts_[w]; }
uint start_of(uint j) { return word_of(j >> 1) >> 16u * (j & 1u) & 0xffffu; }

// Turns the counts into where each element's terms begin; how many there are in all.
uint sum_counts() {
  const uint span = (kWords + LANES - 1u) / LANES, first = lane() * span, end = min(first + span, kWords);
  uint total = 0u;
  for (uint w = first; w < end; ++w) total += (word_of(w) & 0xffffu) + (word_of(w) >> 16u);
  uint sum = total, side = 0u;
  totals_[lane()] = total;
  barrier();
  for (uint step = 1u; step < LANES; step *= 2u) {
    if (lane() >= step) sum += totals_[side + lane() - step];
    side = LANES - side;
    totals_[side + lane()] = sum;
    barrier();
  }
  uint start = sum - total;
  for (uint w = first; w < end; ++w) {
    const uint word = word_of(w), next = start + (word & 0xffffu);
    starts_[w] = start | next << 16u;
    start = next + (word >> 16u);
  }
  return totals_[side + LANES - 1u];
}

void order(inout uvec2 a, inout uvec2 b) {
  const uvec2 low = a.x < b.x ? a : b;
  b = a.x < b.x ? b : a;
  a = low;
}

float add_few(float sum, uint first, uint n) {
  uvec2 e[kFew];
  [[unroll]] for (uint k = 0u; k < kFew; ++k) e[k] = k < n ? list_[first + k] : uvec2(kNobody, 0u);
  order(e[0], e[1]);
  order(e[2], e[3]);
  order(e[0], e[2]);
  order(e[1], e[3]);
  order(e[1], e[2]);
  [[unroll]] for (uint k = 0u; k < kFew; ++k) if (k < n) sum += uintBitsToFloat(e[k].y);
  return sum;
}

float add_some(float sum, uint first, uint n) {
  uint least = 0u;
  for (uint t = 0u; t < n; ++t) {
    uvec2 next = uvec2(kNobody, 0u);
    for (uint k = first; k < first + n; ++k) {
      const uvec2 e = list_[k];
      if (e.x >= least && e.x < next.x) next = e;
    }
    sum += uintBitsToFloat(next.y);
    least = next.x + 1u;
  }
  return sum;
}

// Of the indices first, ... end - 1 of the row that begins at element `index` of the index, and at `src` of src.
float add_many(float sum, int j, uint first, uint end, uint index, uint src) {
  for (uint p = first; p < end; p += kFew) {
    ivec4 given;
    [[unroll]] for (uint k = 0u; k < kFew; ++k) given[k] = LOAD1(i32, index_, index + min(p + k, end - 1u) * params.inner);
    [[unroll]] for (uint k = 0u; k < kFew; ++k)
      if (given[k] == j && p + k < end) sum += LOAD1(f32, src_, src + (p + k) * params.inner);
  }
  return sum;
}

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uint slab = row / params.inner, from = row % params.inner;
  const uint base = slab * EXTENT * params.inner + from;
  const uint index = slab * params.indices * params.inner + from, src = slab * params.terms * params.inner + from;
  uint begin = 0u;
  do {
    const uint end = min(begin + SCATTER_ROWS_EACH * LANES, params.indices);
    for (uint w = lane(); w < kWords; w += LANES) starts_[w] = 0u;
    barrier();
    uint key[SCATTER_ROWS_EACH], place[SCATTER_ROWS_EACH];
    float term[SCATTER_ROWS_EACH];
    [[unroll]] for (uint k = 0u; k < SCATTER_ROWS_EACH; ++k) {
      const uint p = begin + k * LANES + lane();
      key[k] = kNobody;
      if (p >= end) continue;
      const int given = LOAD1(i32, index_, index + p * params.inner);
      term[k] = LOAD1(f32, src_, src + p * params.inner);
      if (given >= 0 && given < int(EXTENT)) key[k] = uint(given);
      else report_index(params.call, index + p * params.inner, given, int(EXTENT));
    }
    [[unroll]] for (uint k = 0u; k < SCATTER_ROWS_EACH; ++k) {
      const uint shift = 16u * (key[k] & 1u);
      if (key[k] != kNobody) place[k] = atomicAdd(starts_[key[k] >> 1], 1u << shift) >> shift & 0xffffu;
    }
    barrier();
    const uint count = sum_counts();
    barrier();
    [[unroll]] for (uint k = 0u; k < SCATTER_ROWS_EACH; ++k)
      if (key[k] != kNobody) list_[start_of(key[k]) + place[k]] = uvec2(k * LANES + lane(), floatBitsToUint(term[k]));
    barrier();
    for (uint j = lane(); j < EXTENT; j += LANES) {
      const uint first = start_of(j), n = (j + 1u < EXTENT ? start_of(j + 1u) : count) - first, to = base + j * params.inner;
      if (begin != 0u && n == 0u) continue;
      const float sum = begin == 0u ? LOAD1(f32, self_, to) : LOAD1(f32, out_, to);
      STORE1(f32, out_, to,
             n <= kFew                ? add_few(sum, first, n)
             : n * n <= end - begin ? add_some(sum, first, n)
                                      : add_many(sum, int(j), begin, end, index, src));
    }
    barrier();
    begin = end;
  } while (begin < params.indices);
}
