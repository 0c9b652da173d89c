// SPDX-License-Identifier: Apache-2.0
// out = self, with src[p] joined to the element of its row that index[p] names, for all p of the row in order. `pairs` has the indices
// of every row sorted, equal ones in order (glsl/sort.glsl): an element finds the first of its own by halving, then goes on while they
// are its own. One invocation makes a vec4 group of the output and checks one index. An index out of range is reported and joins
// nothing. For i64 a sum that does not fit in 32 bits is reported.
// Bindings: 0 out, 1 status, 2 self, 3 index, 4 pairs, 5 src.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 u8 i8 i64 boolean
#pragma choice MODE put add prod mean max min
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint MODE = 0;
layout(constant_id = 2) const bool INCLUDE_SELF = true;
layout(constant_id = 3) const bool NUMBER = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
#define STATUS_BINDING 1
#include "core/status.glslh"
#include "math/sum.glslh"
layout(set = 0, binding = 2) readonly buffer Self { WORD(DTYPE) self_[]; };
layout(set = 0, binding = 3) readonly buffer Index { WORD(i32) index_[]; };
layout(set = 0, binding = 4) readonly buffer Pairs { uvec2 pairs_[]; };
layout(set = 0, binding = 5) readonly buffer Src { WORD(DTYPE) src_[]; };
layout(push_constant) uniform Params {
  uint count;      // of the output
  uint positions;  // of the index
  uint rank;
  uint dim;
  uint number;     // bits of a src that is a number
  uint call;
  uint size[8];    // of the output
  uint index_size[8];
  uint stride[8];  // of src
} params;

#define T ONE(DTYPE)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define FROM_BITS uintBitsToFloat
T mean_of(T sum, uint terms) { return sum / float(terms); }
#else
#define FROM_BITS int
T mean_of(T sum, uint terms) { return sum; }
T maximum(T a, T b) { return max(a, b); }
T minimum(T a, T b) { return min(a, b); }
#endif

// Where a row of the index is in `pairs`, and its elements in src; `at`: the place of the output's element in its own row.
bool find_row(uint i, out uint at, out uint pairs, out uint from) {
  uint rest = i, step = 1u;
  pairs = 0u;
  from = 0u;
  bool inside = true;
  for (uint d = params.rank; d-- > 0u;) {
    const uint c = take(rest, params.size[d]);
    if (d == params.dim) {
      at = c;
      continue;
    }
    inside = inside && c < params.index_size[d];
    pairs += c * step;
    step *= params.index_size[d];
    from += c * params.stride[d];
  }
  pairs *= params.index_size[params.dim];
  return inside;
}

// The first pair of the row whose index is not below `at`.
uint first_of(uint pairs, uint key) {
  uint first = 0u, end = params.index_size[params.dim];
  while (first < end) {
    const uint middle = (first + end) / 2u;
    if (pairs_[pairs + middle].x < key) first = middle + 1u;
    else end = middle;
  }
  return first;
}

T joined(T old, uint i) {
  uint at, pairs, from, terms = INCLUDE_SELF ? 1u : 0u;
  if (!find_row(i, at, pairs, from)) return old;
  const uint key = at ^ 0x80000000u, extent = params.index_size[params.dim];
  T value = old;
  SUM sum = widen(old);
  for (uint p = first_of(pairs, key); p < extent && pairs_[pairs + p].x == key; ++p, ++terms) {
    T term = FROM_BITS(params.number);
    if (!NUMBER) term = LOAD1(DTYPE, src_, from + pairs_[pairs + p].y * params.stride[params.dim]);
    const bool first = terms == 0u;
    switch (MODE) {
      case MODE_put: value = term; break;
      case MODE_prod: value = first ? term : value * term; break;
      case MODE_max: value = first ? term : maximum(value, term); break;
      case MODE_min: value = first ? term : minimum(value, term); break;
      default: sum = first ? widen(term) : plus(sum, widen(term));
    }
  }
  if (MODE == MODE_add) return element(sum, i);
#ifndef DTYPE_i64
  if (MODE == MODE_mean && terms > 0u) return mean_of(sum, terms);
#endif
  return value;
}

void main() {
  const uint q = item();
  const int rows = int(params.size[params.dim]);
  if (q < params.positions) {
    const int given = LOAD1(i32, index_, q);
    if (given < 0 || given >= rows) report_index(params.call, q, given, rows);
  }
  if (4u * q >= params.count) return;
  VEC(DTYPE) v = LOAD4(DTYPE, self_, q);
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) v[k] = joined(v[k], 4u * q + k);
  STORE4(DTYPE, out_, q, v);
}
