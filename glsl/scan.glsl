// SPDX-License-Identifier: Apache-2.0
// out[.., j, ..] = in[.., 0, ..] JOIN ... JOIN in[.., j, ..] along one dimension: sums, products, extrema with the place of the
// last of equal ones (a NaN is chosen before all), log(sum(exp)). A workgroup has a row, LANES * EACH elements at a time: each
// invocation joins its own, a scan in shared memory those of the invocations, joined to the result of all elements before. Sums of i64
// have 64 bits; one that does not fit in 32 is reported, as a product.
// Bindings: 0 out, 1 places, 2 status, 3 in. Places are written by max and min only.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 i32 i64
#pragma choice OP prod max min logsumexp sum
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/int64.glslh"
#include "math/math.glslh"

layout(constant_id = 1) const uint OP = 0;
layout(constant_id = 2) const uint EACH = 1u;         // elements of an invocation, 1 or a multiple of 4
layout(constant_id = 3) const bool VECTORS = false;  // rows are whole vec4 groups, and EACH is not 1

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) writeonly buffer Places { WORD(i32) places_[]; };
#define STATUS_BINDING 2
#include "core/status.glslh"
layout(set = 0, binding = 3) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint extent;
  uint inner;  // distance between neighbouring elements of a row
  uint call;
} params;

#define T ONE(DTYPE)
#ifdef DTYPE_f32
#define TO_WORD floatBitsToUint
#define FROM_WORD uintBitsToFloat
bool unordered(T x) { return is_nan(x); }
T log_of_sum(T a, T b) {
  if (a == b && abs(a) == infinity()) return a;
  return maximum(a, b) + log_1_plus(safe_exp(-abs(a - b)));
}
#else
#define TO_WORD uint
#define FROM_WORD int
bool unordered(T x) { return false; }
T log_of_sum(T a, T b) { return a; }
#endif

const uint kNone = 0xffffffffu;
const bool kPlaces = OP == OP_max || OP == OP_min;

// `at`: of an extremum its place, kNone before the first element; of a product of i64 whether 32 bits cannot hold it; of
// a sum of i64 its high word.
struct State {
  T value;
  uint at;
};

// a comes before b.
State join(State a, State b) {
  if (kPlaces) {
    if (a.at == kNone || b.at == kNone) return a.at == kNone ? b : a;
    const bool later = unordered(b.value) ||
                       (!unordered(a.value) && (OP == OP_max ? b.value >= a.value : b.value <= a.value));
    return later ? b : a;
  }
  if (OP == OP_logsumexp) return a.at == kNone ? b : b.at == kNone ? a : State(log_of_sum(a.value, b.value), 0u);
#ifdef DTYPE_i64
  if (OP == OP_sum) {
    const LONG sum = plus(LONG(uint(a.value), a.at), LONG(uint(b.value), b.at));
    return State(int(sum.x), sum.y);
  }
  const LONG all = product(a.value, b.value);
  const bool leaves = ((a.at | b.at) != 0u && all != LONG(0)) || leaves_32_bits(all);
  return State(leaves ? 1 : int(all.x), uint(leaves));
#else
  return State(OP == OP_sum ? a.value + b.value : a.value * b.value, 0u);
#endif
}

// Of the element at j.
State state_of(T x, uint j) {
#ifdef DTYPE_i64
  if (OP == OP_sum) return State(x, widen(x).y);
#endif
  return State(x, kPlaces ? j : 0u);
}

bool leaves(State all) {
#ifdef DTYPE_i64
  if (OP == OP_sum) return leaves_32_bits(LONG(uint(all.value), all.at));
#endif
  return OP == OP_prod && all.at != 0u;
}

shared uint values_[gl_WorkGroupSize.x];
shared uint at_[gl_WorkGroupSize.x];

State shared_state(uint l) { return State(FROM_WORD(values_[l]), at_[l]); }
void share(State state) {
  values_[lane()] = TO_WORD(state.value);
  at_[lane()] = state.at;
}

// Four elements of a row, from element j on.
VEC(DTYPE) load_four(uint i, uint j) {
  if (VECTORS) return LOAD4(DTYPE, in_, i >> 2);
  VEC(DTYPE) four = VEC(DTYPE)(0);
  [[unroll]] for (uint k = 0u; k < 4u; ++k)
    if (j + k < params.extent) four[k] = LOAD1(DTYPE, in_, i + k * params.inner);
  return four;
}

void store(uint i, State all) {
  if (!VECTORS) STORE1(DTYPE, out_, i, all.value);
  if (kPlaces) STORE1(i32, places_, i, int(all.at));
#ifdef DTYPE_i64
  if (leaves(all)) report(params.call, i, STATUS_LEAVES_32_BITS);
#endif
}

void main() {
  const uint row = group();
  if (row >= params.rows) return;
  const uint base = row / params.inner * params.extent * params.inner + row % params.inner;
  const bool has_identity = OP == OP_prod || OP == OP_sum;
  const State none = State(T(OP == OP_sum ? 0 : 1), has_identity ? 0u : kNone);
  State before = none;
  for (uint begin = 0u; begin < params.extent; begin += LANES * EACH) {
    const uint first = begin + lane() * EACH;
    State mine[EACH], state = none;
    if (EACH == 1u) {
      if (first < params.extent) state = state_of(LOAD1(DTYPE, in_, base + first * params.inner), first);
      mine[0] = state;
    } else {
      [[unroll]] for (uint k = 0u; k < EACH; k += 4u) {
        const uint j = first + k;
        VEC(DTYPE) four = VEC(DTYPE)(0);
        if (j < params.extent) four = load_four(base + j * params.inner, j);
        [[unroll]] for (uint e = 0u; e < 4u; ++e) {
          if (j + e < params.extent) {
            const State next = state_of(four[e], j + e);
            state = k + e == 0u ? next : join(state, next);
          }
          mine[k + e] = state;
        }
      }
    }
    share(state);
    barrier();
    for (uint step = 1u; step < LANES; step *= 2u) {
      if (lane() >= step) state = join(shared_state(lane() - step), state);
      barrier();
      share(state);
      barrier();
    }
    const State until = lane() == 0u ? before : join(before, shared_state(lane() - 1u));
    [[unroll]] for (uint k = 0u; k < EACH; ++k) {
      mine[k] = join(until, mine[k]);
      if (first + k < params.extent) store(base + (first + k) * params.inner, mine[k]);
    }
    if (VECTORS) {
      [[unroll]] for (uint k = 0u; k < EACH; k += 4u) {
        const uint j = first + k;
        if (j >= params.extent) continue;
        STORE4(DTYPE, out_, (base + j) >> 2,
               VEC(DTYPE)(mine[k].value, mine[min(k + 1u, EACH - 1u)].value, mine[min(k + 2u, EACH - 1u)].value,
                          mine[min(k + 3u, EACH - 1u)].value));
      }
    }
    before = join(before, shared_state(LANES - 1u));
    barrier();
  }
}
