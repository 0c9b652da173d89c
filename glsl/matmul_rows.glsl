// SPDX-License-Identifier: Apache-2.0
// Rows of an operand of matmul for matmul_matrix.glsl: the k of a row in order, eight fp16 in a uvec4, zeros from params.k to the
// end of the row. A workgroup has eight rows of a batch.
//   X halves  x is fp16
//   X split   x is fp32; a row is the high parts, then the low parts, which count 2^-11 (math/split.glslh), of x times the power of
//             two that brings the row's largest finite element into [2^14, 2^15). scales: the inverse of that power, for each row
// Bindings: 0 out, 1 scales (of halves: not touched), 2 x.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant X halves split
#include "linear/operand_parts.glslh"
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/split.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 1) writeonly buffer Scales { float scales_[]; };
layout(set = 0, binding = 2) readonly buffer X { WORD(DTYPE) x_[]; };

layout(push_constant) uniform Params {
  uint rows;
  uint k;
  uint groups;  // uvec4 of a part of a row of out
  uint row_blocks;
  uint batches;
  uint row_stride;  // strides in elements
  uint k_stride;
  uint size[4];    // of the batch dimensions, padded in front with 1
  uint stride[4];  // theirs
} params;

layout(constant_id = 1) const bool ALONG_ROWS = false;  // neighbouring lanes have neighbouring rows, not neighbouring k
layout(constant_id = 2) const bool VEC4 = false;        // k has stride 1, the other strides are multiples of 4

#define ROWS 8u
#define ROW_LANES (LANES / ROWS)
#if defined(X_split)
shared int size_[ROWS];
#endif

// k .. k+3 of a row, zeros from params.k on.
WORD(DTYPE) load(uint first, uint k) {
  if (VEC4 && k + 4u <= params.k) return x_[(first + k) >> 2];
  WORD(DTYPE) word = WORD(DTYPE)(0);
  for (uint i = 0u; i < 4u; ++i) {
    if (k + i >= params.k) break;
    const uint at = first + (k + i) * params.k_stride;
#if defined(X_split)
    word[i] = x_[at >> 2][at & 3u];
#else  // as bits: a conversion might make 0 of a subnormal number
    word[i >> 1] |= (x_[at >> 2][(at >> 1) & 1u] >> 16u * (at & 1u) & 0xffffu) << 16u * (i & 1u);
#endif
  }
  return word;
}

void main() {
  uint batch = group();
  const uint block = take(batch, params.row_blocks), number = batch;
  if (number >= params.batches) return;  // the whole workgroup
  uint first = 0u;
  for (uint d = 4u; d-- > 0u;) first += take(batch, params.size[d]) * params.stride[d];
  const uint within = ALONG_ROWS ? lane() % ROWS : lane() / ROW_LANES, row = block * ROWS + within;
  const uint begin = ALONG_ROWS ? lane() / ROWS : lane() % ROW_LANES;
  first += min(row, params.rows - 1u) * params.row_stride;
  const uint out_row = number * params.rows + row, out_first = out_row * PARTS * params.groups;

#if defined(X_split)
  if (lane() < ROWS) size_[lane()] = 0;
  barrier();
  int size = 0;
  for (uint g = begin; g < params.groups; g += ROW_LANES) {
    for (uint h = 0u; h < 2u; ++h) size = max(size, largest_size(uintBitsToFloat(load(first, g * 8u + h * 4u))));
  }
  atomicMax(size_[within], size);
  barrier();
  const int power = row_power(size_[within]);
  if (row >= params.rows) return;
  if (begin == 0u) scales_[out_row] = power_of_2(-power);
  for (uint g = begin; g < params.groups; g += ROW_LANES) {
    uvec4 high, low;
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
      const vec4 x = uintBitsToFloat(load(first, g * 8u + h * 4u));
      uvec2 high_four, low_four;
      split_four(x, power_of_2(power), largest_of(x) < int(kInfBits), high_four, low_four);
      high = uvec4(high.zw, high_four);
      low = uvec4(low.zw, low_four);
    }
    out_[out_first + g] = high;
    out_[out_first + params.groups + g] = low;
  }
#else
  if (row >= params.rows) return;
  for (uint g = begin; g < params.groups; g += ROW_LANES) {
    out_[out_first + g] = uvec4(load(first, g * 8u), load(first, g * 8u + 4u));
  }
#endif
}
