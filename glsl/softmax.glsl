// SPDX-License-Identifier: Apache-2.0
// out[row] = exp(x[row] - max) / sum(exp(x[row] - max)) over the last dimension, or (LOG) x[row] - max - log(sum(...)).
// A workgroup has ROWS rows, as many as make whole vec4 groups. A row of -inf gives NaN, as in PyTorch.
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/reduce.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint ROWS = 1;  // 1 (a row is whole vec4 groups), 2 or 4
layout(constant_id = 2) const bool LOG = false;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint width;
} params;

float row_max(uint row) {
  float peak = -infinity();
  if (ROWS == 1u) {
    vec4 peaks = vec4(peak);
    const uint vec4_count = params.width >> 2;
    for (uint q = lane(); q < vec4_count; q += LANES) peaks = maximum(peaks, LOAD4(DTYPE, in_, row * vec4_count + q));
    peak = maximum(maximum(peaks.x, peaks.y), maximum(peaks.z, peaks.w));
  } else {
    for (uint i = lane(); i < params.width; i += LANES) peak = maximum(peak, LOAD1(DTYPE, in_, row * params.width + i));
  }
  return workgroup_max(peak);
}

float row_sum(uint row, float peak) {
  float sum = 0.0;
  if (ROWS == 1u) {
    vec4 sums = vec4(0);
    const uint vec4_count = params.width >> 2;
    for (uint q = lane(); q < vec4_count; q += LANES) sums += exp(LOAD4(DTYPE, in_, row * vec4_count + q) - peak);
    sum = (sums.x + sums.y) + (sums.z + sums.w);
  } else {
    for (uint i = lane(); i < params.width; i += LANES) sum += exp(LOAD1(DTYPE, in_, row * params.width + i) - peak);
  }
  return workgroup_sum(sum);
}

void main() {
  const uint first = group() * ROWS;
  if (first >= params.rows) return;
  vec4 peak = vec4(0), scale = vec4(1);
  for (uint r = 0u; r < ROWS && first + r < params.rows; ++r) {
    peak[r] = row_max(first + r);
    const float sum = row_sum(first + r, peak[r]);
    scale[r] = LOG ? safe_log(sum) : 1.0 / sum;
  }
  const uint begin = first * params.width >> 2;
  const uint end = min(begin + (ROWS * params.width >> 2), (params.rows * params.width + 3u) >> 2);
  for (uint q = begin + lane(); q < end; q += LANES) {
    vec4 v = LOAD4(DTYPE, in_, q);
    for (uint k = 0u; k < 4u; ++k) {
      const uint r = ROWS == 1u ? 0u : min((4u * (q - begin) + k) / params.width, ROWS - 1u);
      v[k] = LOG ? v[k] - peak[r] - scale[r] : exp(v[k] - peak[r]) * scale[r];
    }
    STORE4(DTYPE, out_, q, v);
  }
}
