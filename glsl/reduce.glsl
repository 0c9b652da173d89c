// SPDX-License-Identifier: Apache-2.0
// out[i] = the reduction of all in[kept(i) + reduced(j)], j < reduced, over any dimensions: sum, mean, extrema, and so on (REDUCE_*
// of core/modes.glslh). A vec4 group of outputs belongs to one invocation (by_one), or to a workgroup, whose lanes join their
// parts in a tree. Each takes every LANES-th j of all four outputs (by_lanes); or, where in[kept(i) + j] are neighbours, every
// vec4 group of neighbours that is its own, of the one output that a quarter of the lanes has (by_rows). RESULT i64: sums and
// products of integers; one that does not fit in 32 bits is reported.
// Bindings: 0 out, then status where RESULT is i64, then in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16 i32 u8 i8 boolean
#pragma variant RESULT same i32 i64 boolean
// Results in i64 are sums and products of integers; a bool from a bool is the same dtype.
#pragma without DTYPE=f32 RESULT=i64
#pragma without DTYPE=f16 RESULT=i64
#pragma without DTYPE=boolean RESULT=boolean
#pragma choice WORK by_one by_lanes by_rows
#include "core/index.glslh"
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint OP = 0;  // REDUCE_*
layout(constant_id = 2) const uint WORK = WORK_by_one;
layout(constant_id = 3) const bool WHOLE_VEC4 = false;  // four elements that an invocation takes at once are a vec4 group

#ifdef RESULT_same
#define OUT DTYPE
#else
#define OUT RESULT
#endif
layout(set = 0, binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
#if defined(RESULT_i64) && !(defined(DTYPE_f32) || defined(DTYPE_f16))
#define REPORTS
#endif
#include "core/reports.glslh"
layout(set = 0, binding = READS) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint count;
  uint reduced;
  uint kept_rank;   // dimensions 0 .. kept_rank-1 are kept, the others up to rank are reduced
  uint rank;
  float divisor;    // of MEAN and VAR
  uint size[8];
  uint stride[8];
  uint call;
} params;

#define T VEC(DTYPE)
#define E ONE(DTYPE)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
#define LOWEST (-infinity())
#define HIGHEST infinity()
T divide(T x) { return x / params.divisor; }
T root(T x) { return safe_sqrt(x); }
bool unordered(E x) { return is_nan(x); }
uvec4 to_words(T x) { return floatBitsToUint(x); }
T from_words(uvec4 x) { return uintBitsToFloat(x); }
#else
#define LOWEST int(0x80000000)
#define HIGHEST 0x7fffffff
T divide(T x) { return x; }
T root(T x) { return x; }
bool unordered(E x) { return false; }
uvec4 to_words(T x) { return uvec4(x); }
T from_words(uvec4 x) { return T(x); }
T maximum(T a, T b) { return max(a, b); }
T minimum(T a, T b) { return min(a, b); }
#endif

const uint kNone = 0xffffffffu;
const bool kArg = OP == REDUCE_ARGMAX || OP == REDUCE_ARGMIN;

// Four running reductions. `at`: for ARGMAX and ARGMIN, the j of the value; with REPORTS, for SUM the high half, for
// PROD whether 32 bits cannot hold it (the value is then not 0).
struct State {
  T value;
  uvec4 at;
};

State start() {
  switch (OP) {
    case REDUCE_MAX: return State(T(LOWEST), uvec4(0));
    case REDUCE_MIN: return State(T(HIGHEST), uvec4(0));
    case REDUCE_PROD: case REDUCE_ALL: return State(T(1), uvec4(0));
    case REDUCE_ARGMAX: case REDUCE_ARGMIN: return State(T(0), uvec4(kNone));
    default: return State(T(0), uvec4(0));
  }
}

// Whether y at j is chosen before x at i: NaN before all others, the first of equals.
bool wins(E y, uint j, E x, uint i) {
  if (j == kNone || i == kNone) return i == kNone;
  if (unordered(x) || unordered(y)) return unordered(y) && (!unordered(x) || j < i);
  if (x == y) return j < i;
  return OP == REDUCE_ARGMAX ? y > x : y < x;
}

#ifdef REPORTS
State join(State a, State b) {
  for (uint k = 0u; k < 4u; ++k) {
    if (OP == REDUCE_SUM) {
      const LONG sum = plus(LONG(a.value[k], a.at[k]), LONG(b.value[k], b.at[k]));
      a.value[k] = int(sum.x);
      a.at[k] = sum.y;
    } else {
      const LONG all = product(a.value[k], b.value[k]);
      const bool leaves = (a.at[k] | b.at[k]) != 0u && all != LONG(0) || leaves_32_bits(all);
      a.value[k] = leaves ? 1 : int(all.x);
      a.at[k] = uint(leaves);
    }
  }
  return a;
}
bool leaves_32_bits(State state, uint k) {
  return OP == REDUCE_SUM ? leaves_32_bits(LONG(state.value[k], state.at[k])) : state.at[k] != 0u;
}
#else
State join(State a, State b) {
  switch (OP) {
    case REDUCE_MAX: return State(maximum(a.value, b.value), a.at);
    case REDUCE_MIN: return State(minimum(a.value, b.value), a.at);
    case REDUCE_PROD: case REDUCE_ALL: return State(a.value * b.value, a.at);
    case REDUCE_ANY: return State(max(a.value, b.value), a.at);
    case REDUCE_ARGMAX: case REDUCE_ARGMIN:
      for (uint k = 0u; k < 4u; ++k) {
        if (!wins(b.value[k], b.at[k], a.value[k], a.at[k])) continue;
        a.value[k] = b.value[k];
        a.at[k] = b.at[k];
      }
      return a;
    default: return State(a.value + b.value, a.at);
  }
}
#endif

// What an element contributes. `mean`: for the squares of VAR.
T term(T x, T mean, bool squares) {
  if (OP == REDUCE_ANY || OP == REDUCE_ALL) return T(notEqual(x, T(0)));
  if (OP == REDUCE_NORM || squares) return (x - mean) * (x - mean);
  return x;
}

uint index_of(uint i, uint first_dim, uint end_dim) {
  uint index = 0u;
  for (uint d = end_dim; d-- > first_dim;) index += take(i, params.size[d]) * params.stride[d];
  return index;
}

shared uvec4 values_[gl_WorkGroupSize.x];
shared uvec4 places_[gl_WorkGroupSize.x];

// Of `count` lanes from `first` on, the parts of all of them, in each.
State join_lanes(State mine, uint first, uint count) {
  values_[lane()] = to_words(mine.value);
  places_[lane()] = mine.at;
  barrier();
  for (uint n = count; n > 1u;) {
    const uint above = (n + 1u) >> 1;
    if (lane() - first < (n >> 1)) {
      const uint other = lane() + above;
      mine = join(mine, State(from_words(values_[other]), places_[other]));
      values_[lane()] = to_words(mine.value);
      places_[lane()] = mine.at;
    }
    barrier();
    n = above;
  }
  const State all = State(from_words(values_[first]), places_[first]);
  barrier();
  return all;
}

State part_of(T x, T mean, bool squares, uvec4 j) {
#ifdef REPORTS
  return State(x, OP == REDUCE_SUM ? uvec4(x >> 31) : uvec4(0));
#else
  return State(term(x, mean, squares), j);
#endif
}

State reduce_row(uint base, T mean, bool squares) {
  const uint quarter = LANES / 4u, first = lane() / quarter * quarter;
  State state = start();
  for (uint j = 4u * (lane() - first); j < params.reduced; j += 4u * quarter) {
    T x;
    if (WHOLE_VEC4) {
      x = LOAD4(DTYPE, in_, (base + j) >> 2);
    } else {
      for (uint k = 0u; k < 4u; ++k) x[k] = LOAD1(DTYPE, in_, base + min(j + k, params.reduced - 1u));
    }
    State part = part_of(x, mean, squares, j + uvec4(0, 1, 2, 3));
    for (uint k = 1u; !WHOLE_VEC4 && k < 4u; ++k) {
      if (j + k < params.reduced) continue;
      part.value[k] = start().value[k];
      part.at[k] = start().at[k];
    }
    state = join(state, part);
  }
  state = join_lanes(state, first, quarter);
  state = join(state, State(state.value.zwxy, state.at.zwxy));
  return join(state, State(state.value.yxwz, state.at.yxwz));
}

// Of the vec4 group of outputs whose inputs begin at `bases`; by_rows: of the output of the invocation's quarter, four times.
State reduce(uvec4 bases, T mean, bool squares) {
  if (WORK == WORK_by_rows) return reduce_row(bases[4u * lane() / LANES], mean, squares);
  const bool together = WORK == WORK_by_lanes;
  State state = start();
  for (uint j = together ? lane() : 0u; j < params.reduced; j += together ? LANES : 1u) {
    const uint offset = index_of(j, params.kept_rank, params.rank);
    T x;
    if (WHOLE_VEC4) {
      x = LOAD4(DTYPE, in_, (bases.x + offset) >> 2);
    } else {
      for (uint k = 0u; k < 4u; ++k) x[k] = LOAD1(DTYPE, in_, bases[k] + offset);
    }
    state = join(state, part_of(x, mean, squares, uvec4(j)));
  }
  return together ? join_lanes(state, 0u, LANES) : state;
}

// by_rows: of each quarter of the lanes one.
State of_quarters(State mine) {
  const uint quarter = LANES / 4u;
  if (lane() % quarter == 0u) {
    values_[lane() / quarter] = to_words(mine.value);
    places_[lane() / quarter] = mine.at;
  }
  barrier();
  const uvec4 words = uvec4(values_[0].x, values_[1].x, values_[2].x, values_[3].x);
  return State(from_words(words), uvec4(places_[0].x, places_[1].x, places_[2].x, places_[3].x));
}

void main() {
  const uint q = WORK == WORK_by_one ? item() : group();
  if (4u * q >= params.count) return;
  uvec4 bases;
  for (uint k = 0u; k < 4u; ++k) bases[k] = index_of(min(4u * q + k, params.count - 1u), 0u, params.kept_rank);
  State state = reduce(bases, T(0), false);
  if (OP == REDUCE_VAR) state = reduce(bases, state.value / E(params.reduced), true);
  if (OP == REDUCE_MEAN || OP == REDUCE_VAR) state.value = divide(state.value);
  if (OP == REDUCE_NORM) state.value = root(state.value);
  if (WORK == WORK_by_rows) state = of_quarters(state);
  const VEC(OUT) result = kArg ? VEC(OUT)(state.at) : VEC(OUT)(state.value);
  if (WORK != WORK_by_one && lane() != 0u) return;
#ifdef REPORTS
  for (uint k = 0u; k < 4u && 4u * q + k < params.count; ++k) {
    if (leaves_32_bits(state, k)) report(params.call, 4u * q + k, STATUS_LEAVES_32_BITS);
  }
#endif
  STORE4(OUT, out_, q, result);
}
