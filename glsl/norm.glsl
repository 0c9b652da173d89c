// SPDX-License-Identifier: Apache-2.0
// layer_norm (CENTER): out[row] = (x[row] - mean) * rsqrt(mean((x[row] - mean)^2) + eps) * weight + bias
// rms_norm:            out[row] = x[row] * rsqrt(mean(x[row]^2) + eps) * weight
// group_norm: layer_norm where `inner` neighbours share an element of weight and bias (GROUPED)
// A workgroup has ROWS rows, as many as make whole vec4 groups; sums are fp32 trees over its lanes.
// Bindings: 0 out, 1 in, 2 weight, 3 bias.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"
#include "math/math.glslh"
#include "core/reduce.glslh"
#include "core/types.glslh"

layout(constant_id = 1) const uint ROWS = 1;  // 1 (a row is whole vec4 groups), 2 or 4
layout(constant_id = 2) const bool CENTER = true;
layout(constant_id = 3) const bool WEIGHT = true;
layout(constant_id = 4) const bool BIAS = true;
layout(constant_id = 5) const bool GROUPED = false;  // inner is not 1
layout(constant_id = 6) const uint HELD = 0;  // vec4 groups of the row that an invocation keeps: all of its own, or 0

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { WORD(DTYPE) weight_[]; };
layout(set = 0, binding = 3) readonly buffer Bias { WORD(DTYPE) bias_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint width;
  float eps;
  uint inner;     // neighbours that share an element of the weight; 1: layer_norm and rms_norm
  uint channels;  // elements of the weight
} params;

// The invocation's vec4 groups of the row: lane() + k * LANES.
vec4 held_[HELD == 0u ? 1u : HELD];

void hold(uint row) {
  const uint vec4_count = params.width >> 2;
  [[unroll]] for (uint k = 0u; k < HELD; ++k) {
    const uint q = lane() + k * LANES;
    held_[k] = q < vec4_count ? LOAD4(DTYPE, in_, row * vec4_count + q) : vec4(0);
  }
}

#define FEW_LANES 8u  // of a CPU driver: one SIMD vector, whose lanes are added one after the other, as a barrier costs more
shared float sums_[LANES <= FEW_LANES ? LANES : 1u];

float row_sum(float sum) {
  if (LANES > FEW_LANES) return workgroup_sum(sum);
  sums_[lane()] = sum;
  barrier();
  sum = 0.0;
  for (uint i = 0u; i < LANES; ++i) sum += sums_[i];
  barrier();
  return sum;
}

// Mean of x - shift, or of its square, over a row.
float row_mean(uint row, float shift, bool squares) {
  float sum = 0.0;
  if (HELD != 0u) {
    vec4 sums = vec4(0);
    [[unroll]] for (uint k = 0u; k < HELD; ++k) {
      if (4u * (lane() + k * LANES) >= params.width) break;
      const vec4 x = held_[k] - shift;
      sums += squares ? x * x : x;
    }
    sum = (sums.x + sums.y) + (sums.z + sums.w);
  } else if (ROWS == 1u) {
    vec4 sums = vec4(0);
    const uint vec4_count = params.width >> 2;
    for (uint q = lane(); q < vec4_count; q += LANES) {
      const vec4 x = LOAD4(DTYPE, in_, row * vec4_count + q) - shift;
      sums += squares ? x * x : x;
    }
    sum = (sums.x + sums.y) + (sums.z + sums.w);
  } else {
    for (uint i = lane(); i < params.width; i += LANES) {
      const float x = LOAD1(DTYPE, in_, row * params.width + i) - shift;
      sum += squares ? x * x : x;
    }
  }
  return row_sum(sum) / float(params.width);
}

// The element of the weight that belongs to element k of vec4 group q of the whole input.
uint channel(uint q, uint k) { return (4u * q + k) / params.inner % params.channels; }

// `column`: the number of vec4 group q in its row, where a workgroup has one row.
vec4 weight(uint q, uint column) {
  if (!WEIGHT) return vec4(1);
  if (ROWS == 1u && !GROUPED) return LOAD4(DTYPE, weight_, column);
  vec4 v;
  for (uint k = 0u; k < 4u; ++k) v[k] = LOAD1(DTYPE, weight_, channel(q, k));
  return v;
}

vec4 bias(uint q, uint column) {
  if (!BIAS) return vec4(0);
  if (ROWS == 1u && !GROUPED) return LOAD4(DTYPE, bias_, column);
  vec4 v;
  for (uint k = 0u; k < 4u; ++k) v[k] = LOAD1(DTYPE, bias_, channel(q, k));
  return v;
}

void main() {
  const uint first = group() * ROWS;
  if (first >= params.rows) return;
  vec4 mean = vec4(0), scale = vec4(1);
  if (HELD != 0u) hold(first);
  for (uint r = 0u; r < ROWS && first + r < params.rows; ++r) {
    if (CENTER) mean[r] = row_mean(first + r, 0.0, false);
    scale[r] = safe_rsqrt(row_mean(first + r, mean[r], true) + params.eps);
  }
  [[unroll]] for (uint k = 0u; k < HELD; ++k) {
    const uint column = lane() + k * LANES, q = (first * params.width >> 2) + column;
    if (4u * column >= params.width) break;
    STORE4(DTYPE, out_, q, (held_[k] - mean.x) * scale.x * weight(q, column) + bias(q, column));
  }
  if (HELD != 0u) return;
  const uint begin = first * params.width >> 2;
  const uint end = min(begin + (ROWS * params.width >> 2), (params.rows * params.width + 3u) >> 2);
  for (uint q = lane(); begin + q < end; q += LANES) {
    vec4 means = vec4(mean.x), scales = vec4(scale.x);
    for (uint k = 0u; ROWS > 1u && k < 4u; ++k) {
      const uint r = min((4u * q + k) / params.width, ROWS - 1u);
      means[k] = mean[r];
      scales[k] = scale[r];
    }
    const vec4 x = LOAD4(DTYPE, in_, begin + q);
    STORE4(DTYPE, out_, begin + q, (x - means) * scales * weight(begin + q, q) + bias(begin + q, q));
  }
}
