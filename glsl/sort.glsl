// SPDX-License-Identifier: Apache-2.0
// Sorts rows of x into pairs {key, place}, smallest key first, equal keys in the order of their places: so it is stable, and the same
// in every run. A key is an element as an integer in its order, -0 as 0, NaN above all; DESCENDING: its complement.
//
// STEP  from_x   a workgroup sorts BLOCK elements of a row by a bitonic network in shared memory and writes the first `keep`
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
layout(constant_id = 3) const uint BLOCK = 1024;  // a power of two up to kMost

const uint kMost = 1024u, kPad = 0xffffffffu;

layout(set = 0, binding = 0) buffer A { uvec2 a_[]; };
layout(set = 0, binding = 1) buffer B { uvec2 b_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(DTYPE) x_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint extent;  // of a row: elements, or pairs that are left of it
  uint inner;   // distance between neighbouring elements of x in a row
  uint stride;  // pairs between rows
  uint keep;
  uint run;     // of merge: pairs that are sorted already
  uint to_b;
} params;

shared uint keys_[kMost];
shared uint places_[kMost];

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

void exchange(uint i, uint j, bool ascending) {
  const uint a = keys_[i], b = keys_[j], p = places_[i], q = places_[j];
  if ((a > b || (a == b && p > q)) != ascending) return;
  keys_[i] = b;
  keys_[j] = a;
  places_[i] = q;
  places_[j] = p;
}

void sort_block() {
  const uint blocks = (params.extent + BLOCK - 1u) / BLOCK;
  const uint row = group() / blocks, block = group() % blocks;
  if (row >= params.rows) return;
  const uint count = min(BLOCK, params.extent - block * BLOCK);
  for (uint t = lane(); t < BLOCK; t += LANES) {
    const uvec2 pair = t < count ? element(row, block * BLOCK + t) : uvec2(kPad);
    keys_[t] = pair.x;
    places_[t] = pair.y;
  }
  barrier();
  for (uint k = 2u; k <= BLOCK; k *= 2u) {
    for (uint step = k / 2u; step > 0u; step /= 2u) {
      for (uint t = lane(); t < BLOCK / 2u; t += LANES) {
        const uint i = 2u * t - (t & (step - 1u));
        exchange(i, i + step, (i & k) == 0u);
      }
      barrier();
    }
  }
  const uint to = row * params.stride + block * params.keep;
  for (uint t = lane(); t < min(count, params.keep); t += LANES) store(to + t, uvec2(keys_[t], places_[t]));
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
  else sort_block();
}
