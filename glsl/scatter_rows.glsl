// SPDX-License-Identifier: Apache-2.0
// scatter_add of f32 by rows: out[r, j] = self[r, j] + src[r, p] for every p with index[r, p] = j. Sums are made in integers, so that
// their order does not matter: a number is its mantissa, shifted by how far its exponent is above the lowest of a window of WINDOW
// exponents. The sum of a window is exact and rounded once; the first window ends at the largest exponent, and there are more only
// where smaller numbers are left. Infinities and NaN have a window of their own, in which the words are flags.
// A workgroup has COLUMNS neighbouring rows (where an element of a row is as far from the next as there are rows) and PART elements of
// each; it reads all indices of its rows. An index out of range is reported and adds nothing.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 src; SRC at5: 4 pairs (of the other kernel), 5 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant SRC at5 at4
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint COLUMNS = 1u;  // a power of two
layout(constant_id = 2) const uint PART = 1u;
layout(constant_id = 3) const bool ONCE = false;  // an invocation has no more than SCATTER_EACH elements and terms: terms are read once

// Words: the component of a vec4 group, chosen by a number, cost 4 %.
layout(set = 0, binding = 0) buffer Out { float out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
layout(set = 0, binding = 2) readonly buffer Self { uint self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { uint index_[]; };
#ifdef SRC_at5
layout(set = 0, binding = 4) readonly buffer Pairs { uvec2 pairs_[]; };
#define SRC_BINDING 5
#else
#define SRC_BINDING 4
#endif
layout(set = 0, binding = SRC_BINDING) readonly buffer Src { uint src_[]; };
layout(push_constant) uniform Params {
  uint groups;
  uint parts;    // of a row
  uint tiles;    // of COLUMNS rows, in a slab
  uint extent;   // of a row of the output
  uint indices;  // of a row, up to 2^16
  uint terms;    // of a row of src, of which the first `indices` count
  uint inner;    // distance between neighbouring elements of a row
  uint call;
} params;

const uint WINDOW = 22u;  // with 24 bits of a mantissa and 17 of a count, a sum has 63 bits at most
const uint kNoNumber = 255u, kSize = 0x7fffffffu, kInfinity = 0x7f800000u;
shared uint low_[PART * COLUMNS];  // at first the elements of self
shared uint high_[PART * COLUMNS];
shared uint largest_;  // exponent
shared uint smaller_;  // whether there are numbers below the window

// The terms of an invocation, at j, j + step, ...; after the last one they are 0 and indices out of range.
uint term_[SCATTER_EACH], key_[SCATTER_EACH];

void load_terms(uint begin, uint begin_of_index, uint j, uint step, uint indices) {
  [[unroll]] for (uint k = 0u; k < SCATTER_EACH; ++k, j += step) {
    term_[k] = j < indices ? src_[begin + j * params.inner] : 0u;
    key_[k] = j < indices ? index_[begin_of_index + j * params.inner] : 0xffffffffu;
  }
}

// A number of the window of exponents lowest, ... end - 1; any other is 0.
ivec2 fixed_of(uint bits, uint lowest, uint end) {
  const uint exponent = bits >> 23 & 255u, shift = max(exponent, 1u) - lowest;
  if (shift >= end - lowest) return ivec2(0);
  const int mantissa = int(bits & 0x7fffffu | (exponent == 0u ? 0u : 0x800000u));
  ivec2 value;
  imulExtended(int(bits) < 0 ? -mantissa : mantissa, 1 << shift, value.y, value.x);
  return value;
}

bool is_below(uint bits, uint lowest) { return (bits & kSize) - 1u < (lowest << 23) - 1u; }

// What a number that is none adds: 1 and 2 for the infinities, 4 for NaN.
uint flag_of(uint bits) {
  const uint size = bits & kSize;
  return size < kInfinity ? 0u : size > kInfinity ? 4u : 1u << (bits >> 31);
}

// The f32 nearest to a sum of fixed_of.
uint rounded(uvec2 sum, uint lowest) {
  if ((sum.x | sum.y) == 0u) return 0u;
  const uint sign = sum.y & 0x80000000u;
  if (sign != 0u) sum = uvec2(0u - sum.x, ~sum.y + uint(sum.x == 0u));
  // The top bit goes to the end of 64, but for numbers so small that they have none where others have it.
  const int top = max(sum.y != 0u ? 32 + findMSB(sum.y) : findMSB(sum.x), 24 - int(lowest));
  const uint up = uint(63 - top), part = up & 31u;
  if (up >= 32u) sum = uvec2(0u, sum.x);
  sum = uvec2(sum.x << part, sum.y << part | (part == 0u ? 0u : sum.x >> (32u - part)));
  const uint rest = sum.y & 0xffu | uint(sum.x != 0u), odd = sum.y >> 8 & 1u;
  return sign | min((uint(int(lowest) + top - 24) << 23) + (sum.y >> 8) + uint(rest + odd > 0x80u), kInfinity);
}

uint number_of(uint flags) { return flags == 0u ? 0u : flags == 1u ? kInfinity : flags == 2u ? 0xff800000u : 0x7fc00000u; }

void add(uint to, ivec2 term) {
  const uint low = uint(term.x), old = atomicAdd(low_[to], low), more = uint(term.y) + uint(old + low < low);
  if (more != 0u) atomicAdd(high_[to], more);
}

void main() {
  uint rest = group();
  if (rest >= params.groups) return;
  const uint first = take(rest, params.parts) * PART, tile = take(rest, params.tiles), slab = rest;
  const uint column = lane() % COLUMNS, from = tile * COLUMNS + column, begin = lane() / COLUMNS, step = LANES / COLUMNS;
  const uint size = from < params.inner ? min(PART, params.extent - first) : 0u;
  const uint indices = from < params.inner ? params.indices : 0u;
  const uint base = (slab * params.extent + first) * params.inner + from;
  const uint index = slab * params.indices * params.inner + from, src = slab * params.terms * params.inner + from;
  uint end = kNoNumber + 1u;
  bool again = false;
  do {
    uint largest = 0u;
    largest_ = smaller_ = 0u;
    barrier();
    for (uint j = begin; j < max(size, indices); j += SCATTER_EACH * step) {
      load_terms(src, index, j, step, indices);
      [[unroll]] for (uint k = 0u; k < SCATTER_EACH; ++k) {
        const uint at = j + k * step, own = at < size ? self_[base + at * params.inner] : 0u;
        if (at < size) low_[at * COLUMNS + column] = own;
        const uint a = own & kSize, b = term_[k] & kSize;
        if (a >> 23 < end) largest = max(largest, a);
        if (b >> 23 < end) largest = max(largest, b);
      }
    }
    // Not by the tree of core/reduce.glslh: its barriers took an eighth of the kernel's time.
    atomicMax(largest_, largest >> 23);
    barrier();
    const uint top = max(largest_, 1u), lowest = top == kNoNumber ? top : max(top, WINDOW) - WINDOW + 1u;
    const bool flags = top == kNoNumber;
    bool smaller = false;
    for (uint j = begin; j < size; j += step) {
      const uint to = j * COLUMNS + column, own = low_[to];
      const ivec2 value = flags ? ivec2(flag_of(own), 0) : fixed_of(own, lowest, end);
      smaller = smaller || is_below(own, lowest);
      low_[to] = uint(value.x);
      high_[to] = uint(value.y);
    }
    barrier();
    for (uint p = begin; p < indices; p += SCATTER_EACH * step) {
      if (!ONCE) load_terms(src, index, p, step, indices);
      [[unroll]] for (uint k = 0u; k < SCATTER_EACH; ++k) {
        const uint at = p + k * step, j = key_[k] - first, to = j * COLUMNS + column;
        if (!again && first == 0u && at < indices && key_[k] >= params.extent)
          report_index(params.call, index + at * params.inner, int(key_[k]), int(params.extent));
        if (j >= size) continue;
        smaller = smaller || is_below(term_[k], lowest);
        if (flags) atomicOr(low_[to], flag_of(term_[k]));
        else add(to, fixed_of(term_[k], lowest, end));
      }
    }
    if (smaller) smaller_ = 1u;
    barrier();
    for (uint j = begin; j < size; j += step) {
      const uint to = j * COLUMNS + column, at = base + j * params.inner;
      const uint sum = flags ? number_of(low_[to]) : rounded(uvec2(low_[to], high_[to]), lowest);
      const float before = again ? out_[at] : 0.0, added = before + uintBitsToFloat(sum);
      // A driver may take the smallest numbers for 0 where it adds.
      if (!again || sum != 0u) out_[at] = before == 0.0 ? uintBitsToFloat(sum) : added;
    }
    again = smaller_ != 0u;
    end = lowest;
    barrier();
  } while (again && end > 1u);
}
