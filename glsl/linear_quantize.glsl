// SPDX-License-Identifier: Apache-2.0
// Quantizes the rows of x[M, K] for linear kernels: q, and each row's scale and zero point. A workgroup has a row.
//
//   FORM floats  out[m, k] = q - zero as a float, exact in fp16 (rows of 64 * tiles columns, those past K are 0)
//   FORM halves  the same in fp16, where x is not fp16
//   FORM words   q - params.shift as signed bytes, [tile][m][16 words]; word 4t + s holds the columns 0, 2, 1, 3 counted from
//                column_of(t, s) of linear/packed.glslh; columns past K are the zero point, so that they add nothing
//   STORAGE      of x, and of an output of floats
//   rows[m]      bits of the scale; the zero point - params.shift; FORM words: also the sum of q - zero, and 0
// Bindings: 0 out, 1 rows, 2 x, 3 given scale, 4 given zero.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN f32 f16 i8 u8
#pragma variant FORM floats words halves
#pragma variant STORAGE buffer texture3d
// Of f16, floats are halves already; no kernel that reads halves takes textures.
#pragma without IN=f16 FORM=halves
#pragma without FORM=halves STORAGE=texture3d
#include "core/modes.glslh"
#include "core/texture.glslh"

#if defined(FORM_words)
layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#else
#if defined(IN_f16) || defined(FORM_halves)
#define OUT f16
#else
#define OUT f32
#endif
#if defined(STORAGE_texture3d)
layout(set = 0, binding = 0, FORMAT(OUT)) writeonly uniform IMAGE(OUT) out_;
#else
layout(set = 0, binding = 0) writeonly buffer Out { WORD(OUT) out_[]; };
#endif
#endif
#if defined(FORM_words)
layout(set = 0, binding = 1) writeonly buffer Rows { uvec4 rows_[]; };
#else
layout(set = 0, binding = 1) writeonly buffer Rows { uvec2 rows_[]; };
#endif
#if defined(STORAGE_texture3d)
layout(set = 0, binding = 2) uniform TEXTURE(IN) x_;
#else
layout(set = 0, binding = 2) readonly buffer X { WORD(IN) x_[]; };
#endif

layout(push_constant) uniform Params {
  uint m;
  uint k;
  uint tiles;   // ceil(k / 64)
  uint height;  // of textures
  ROW_SOURCE_PARAMS
} params;

#define GIVEN_BINDING 3
#define SOURCE_SPEC 1
#include "quant/row_source.glslh"
#include "core/reduce.glslh"

// Vectors that a lane keeps in registers from the range to the quantization; 0: x is read twice.
layout(constant_id = 7) const uint HELD = 0u;
#if defined(IN_FLOATS)
X_WORD held_[4u * (HELD == 0u ? 1u : HELD)];
#endif

// A vector is the four vec4 groups of lane t of a tile. The first column of its step s:
uint column(uint vector, uint s) { return (vector >> 2) * 64u + (s >> 1) * 32u + (vector & 3u) * 8u + (s & 1u) * 4u; }
uint within(uint k) { return min(k, params.k - 1u) & ~3u; }

#ifdef IN_FLOATS
// range_of_lane for the vectors of a lane; past the last vector, that one again. All loads are issued at once.
void hold_vectors(uint row, out int lowest, out int highest) {
  [[unroll]] for (uint h = 0u; h < HELD; ++h) {
    const uint vector = min(lane() + h * LANES, params.tiles * 4u - 1u);
    [[unroll]] for (uint s = 0u; s < 4u; ++s) held_[h * 4u + s] = load_word(row, within(column(vector, s)));
  }
  ivec4 low = ivec4(0x7fffffff), high = ivec4(0x80000000);
  [[unroll]] for (uint i = 0u; i < HELD * 4u; ++i) {
    const uint vector = min(lane() + i / 4u * LANES, params.tiles * 4u - 1u);
    const ivec4 x = ordered(unpack_word(held_[i], within(column(vector, i % 4u))));
    low = min(low, x);
    high = max(high, x);
  }
  lowest = min(min(low.x, low.y), min(low.z, low.w));
  highest = max(max(high.x, high.y), max(high.z, high.w));
}
#endif

ivec4 sum_ = ivec4(0);  // of q - zero

// usual: whether quantize_usual() does for the row's parameters.
void store_vector(uint row, uint vector, VEC(IN) x[4], RowParams p, bool usual) {
  uvec4 words;
  [[unroll]] for (uint s = 0u; s < 4u; ++s) {
    const uint k = column(vector, s);
    const ivec4 q = usual ? to_integers_usual(x[s], k, p) : to_integers(x[s], k, p);
#if !defined(FORM_words) && defined(STORAGE_texture3d)
    PUT4(OUT, out_, texel_of(k >> 2, row, params.height), vec4(q - p.zero));
#elif !defined(FORM_words)
    STORE4(OUT, out_, row * params.tiles * 16u + (k >> 2), vec4(q - p.zero));
#else
    words[s] = pack_i8(q.xzyw - params.shift);
    sum_ += q - p.zero;
#endif
  }
#if defined(FORM_words)
  out_[((vector >> 2) * params.m + row) * 4u + (vector & 3u)] = words;
#endif
}

void main() {
  const uint row = group(), vectors = params.tiles * 4u;
  if (row >= params.m) return;  // the whole workgroup
  int lowest = 0, highest = 0;
#ifdef IN_FLOATS
  if (SOURCE == ROWS_CHOSEN) {
    if (HELD != 0u) hold_vectors(row, lowest, highest);
    else range_of_lane(row, lane(), LANES, lowest, highest);
    lowest = workgroup_min(lowest);
    highest = workgroup_max(highest);
  }
#endif
  const RowParams p = params_of_row(row, lowest, highest);
  VEC(IN) x[4];
  bool is_held = false;
#ifdef IN_FLOATS
  // Of held vectors only the usual quantization: unrolled, all of it would take drivers half a second to compile.
  is_held = HELD != 0u && is_usual(p.inverse, float(p.zero));
  if (is_held) {
    [[unroll]] for (uint h = 0u; h < HELD; ++h) {
      [[unroll]] for (uint s = 0u; s < 4u; ++s) x[s] = UNPACK_X(held_[h * 4u + s]);
      if (lane() + h * LANES < vectors) store_vector(row, lane() + h * LANES, x, p, true);
    }
  }
#endif
  for (uint vector = is_held ? vectors : lane(); vector < vectors; vector += LANES) {
    [[unroll]] for (uint s = 0u; s < 4u; ++s) x[s] = load_vec4(row, within(column(vector, s)));
    store_vector(row, vector, x, p, false);
  }
  const uvec2 both = uvec2(floatBitsToUint(p.scale), uint(p.zero - params.shift));
#if defined(FORM_words)
  const int total = workgroup_sum(sum_.x + sum_.y + sum_.z + sum_.w);
  if (lane() == 0u) rows_[row] = uvec4(both, uint(total), 0u);
#else
  if (lane() == 0u) rows_[row] = both;
#endif
}
