// SPDX-License-Identifier: Apache-2.0
// Rows of x[M, K] as integers for linear kernels, and each row's scale and zero point; a workgroup has a row.
//
//   FORM floats  out[m, k] = q - zero as a float, exact in fp16 (rows of 64 * tiles columns, those past K are 0)
//   FORM words   q - params.shift as signed bytes, [tile][m][16 words]; word 4t + s holds the columns 0, 2, 1, 3 behind
//                column_of(t, s) of packed.glslh; columns past K are the zero point, so that they count nothing
//   rows[m]      bits of the scale; the zero point - params.shift, as an int
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant IN f32 f16 i8 u8
#pragma variant FORM floats words
#include "modes.glslh"
#include "types.glslh"

#if defined(FORM_words)
layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#elif defined(IN_f16)
#define OUT f16
layout(set = 0, binding = 0) writeonly buffer Out { uvec2 out_[]; };
#else
#define OUT f32
layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#endif
layout(set = 0, binding = 1) writeonly buffer Rows { uvec2 rows_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(IN) x_[]; };
layout(set = 0, binding = 3) readonly buffer Scale { uint given_scale_[]; };  // x again where they are not given
layout(set = 0, binding = 4) readonly buffer Zero { uint given_zero_[]; };

layout(push_constant) uniform Params {
  uint m;
  uint k;
  uint tiles;  // ceil(k / 64)
  ROW_SOURCE_PARAMS
} params;

#define SOURCE_SPEC 1
#include "row_source.glslh"
#include "reduce.glslh"

void main() {
  const uint row = group();
  if (row >= params.m) return;  // the whole workgroup
  int lowest = 0, highest = 0;
#ifdef IN_FLOATS
  if (SOURCE == ROWS_CHOSEN) {
    range_of_lane(row, lane(), LANES, lowest, highest);
    lowest = workgroup_min(lowest);
    highest = workgroup_max(highest);
  }
#endif
  const RowParams p = params_of_row(row, lowest, highest);
  if (lane() == 0u) rows_[row] = uvec2(floatBitsToUint(p.scale), uint(p.zero - params.shift));
  for (uint i = lane(); i < params.tiles * 4u; i += LANES) {
    const uint tile = i >> 2, t = i & 3u;
    uvec4 words;
    [[unroll]] for (uint s = 0u; s < 4u; ++s) {
      const uint k = tile * 64u + (s >> 1) * 32u + t * 8u + (s & 1u) * 4u;
      const ivec4 q = to_integers(load_quad(row, min(k, params.k - 1u) & ~3u), k, p);
#if defined(FORM_floats)
      STORE4(OUT, out_, row * params.tiles * 16u + (k >> 2), vec4(q - p.zero));
#else
      words[s] = pack_i8(q.xzyw - params.shift);
#endif
    }
#if defined(FORM_words)
    out_[(tile * params.m + row) * 4u + t] = words;
#endif
  }
}
