// SPDX-License-Identifier: Apache-2.0
// Sorts rows of x into pairs {key, place}, smallest key first, equal keys in the order of their places: so it is stable, and the same
// in every run. A key is an element as an integer in its order, -0 as 0, NaN above all; DESCENDING: its complement.
//
// STEP  from_x   a workgroup sorts `span` elements of a row by a bitonic network in shared memory and writes the first `keep`. Of a
//                span above BLOCK it first sorts the smallest ones of BLOCK parts: what is above `keep` of these is none of the
//                first, and no more than `keep` parts, which BLOCK pairs hold, have elements that are not above them
//       blocks   the same with pairs of the step before
//       merge    an invocation moves one pair: to its place in its sorted run, plus the number of pairs before it in the other run
// Pairs go from a_ to b_ or back (params.to_b), those of row r at r * stride.
// Bindings: 0 a, 1 b, 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 u8 i8 boolean
#pragma choice STEP from_x blocks merge
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint STEP = 0;
layout(constant_id = 2) const bool DESCENDING = false;
layout(constant_id = 3) const uint BLOCK = 1024;  // a power of two up to 1024
layout(constant_id = 4) const bool WIDE = true;   // whether a span may be above BLOCK

const uint kPad = 0xffffffffu;

layout(set = 0, binding = 0) buffer A { uvec2 a_[]; };
layout(set = 0, binding = 1) buffer B { uvec2 b_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint extent;  // of a row: elements, or pairs that are left of it
  uint inner;   // distance between neighbouring elements of x in a row
  uint stride;  // pairs between rows
  uint keep;
  uint span;    // up to BLOCK * max(BLOCK / keep, 1)
  uint run;     // of merge: pairs that are sorted already
  uint to_b;
} params;

// Of a wide span places_[BLOCK] counts what is listed. Without it there are 8 KB at most: with a word more a sort of
// blocks took 16 % longer on an H100.
shared uint keys_[BLOCK];
shared uint places_[BLOCK + uint(WIDE)];

uint key_of(float x) {
  if (is_nan(x)) return 0xffffffffu;
  const uint bits = x == 0.0 ? 0u : floatBitsToUint(x);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
uint key_of(int x) { return uint(x) ^ 0x80000000u; }

uvec2 load(uint i) { return params.to_b != 0u ? a_[i] : b_[i]; }
void store(uint i, uvec2 pair) {
  if (params.to_b != 0u) b_[i] = pair;
  else a_[i] = pair;
}

uvec2 element(uint row, uint j) {
  if (STEP == STEP_blocks) return load(row * params.stride + j);
  const uint base = row / params.inner * params.extent * params.inner + row % params.inner;
  const uint key = key_of(LOAD1(DTYPE, x_, base + j * params.inner));
  return uvec2(DESCENDING ? ~key : key, j);
}

bool above(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }
uvec2 listed(uint t) { return uvec2(keys_[t], places_[t]); }
void list(uint t, uvec2 pair) {
  keys_[t] = pair.x;
  places_[t] = pair.y;
}

// The pairs that are listed, `size` of them.
void sort_list(uint size) {
  for (uint k = 2u; k <= size; k *= 2u) {
    for (uint step = k / 2u; step > 0u; step /= 2u) {
      for (uint t = lane(); t < size / 2u; t += LANES) {
        const uint i = 2u * t - (t & (step - 1u));
        const uvec2 a = listed(i), b = listed(i + step);
        if (above(a, b) != ((i & k) == 0u)) continue;
        list(i, b);
        list(i + step, a);
      }
      barrier();
    }
  }
}

void sort_span() {
  const uint spans = (params.extent + params.span - 1u) / params.span;
  const uint row = group() / spans, first = group() % spans * params.span;
  if (row >= params.rows) return;
  const uint count = min(params.span, params.extent - first);
  for (uint t = lane(); t < BLOCK; t += LANES) {
    uvec2 least = uvec2(kPad);
    for (uint j = t; j < count; j += BLOCK) {
      const uvec2 pair = element(row, first + j);
      if (above(least, pair)) least = pair;
    }
    list(t, least);
  }
  if (WIDE) places_[BLOCK] = 0u;
  barrier();
  sort_list(BLOCK);
  if (WIDE && count > BLOCK) {
    const uvec2 last = listed(params.keep - 1u);
    barrier();
    for (uint j = lane(); j < count; j += LANES) {
      const uvec2 pair = element(row, first + j);
      if (!above(pair, last)) list(atomicAdd(places_[BLOCK], 1u), pair);
    }
    barrier();
    const uint found = places_[BLOCK], size = 2u << findMSB(max(found, 2u) - 1u);
    for (uint t = found + lane(); t < size; t += LANES) list(t, uvec2(kPad));
    barrier();
    sort_list(size);
  }
  const uint to = row * params.stride + first / params.span * params.keep;
  for (uint t = lane(); t < min(count, params.keep); t += LANES) store(to + t, listed(t));
}

// How many of the pairs first .. end-1 have a key below `key`, or as large as it.
uint before(uint first, uint end, uint key, bool or_equal) {
  const uint begin = first;
  while (first < end) {
    const uint middle = (first + end) / 2u, other = load(middle).x;
    if (other < key || (or_equal && other == key)) first = middle + 1u;
    else end = middle;
  }
  return first - begin;
}

void merge(uint i) {
  if (i >= params.rows * params.extent) return;
  const uint base = i / params.extent * params.stride, j = i % params.extent;
  const uint left = j / (2u * params.run) * 2u * params.run;
  const uint right = min(left + params.run, params.extent), end = min(right + params.run, params.extent);
  const uvec2 pair = load(base + j);
  const uint to = j < right ? j + before(base + right, base + end, pair.x, false)
                            : left + (j - right) + before(base + left, base + right, pair.x, true);
  store(base + to, pair);
}

void main() {
  if (STEP == STEP_merge) merge(item());
  else sort_span();
}
