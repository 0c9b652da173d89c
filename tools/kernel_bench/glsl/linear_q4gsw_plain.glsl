// SPDX-License-Identifier: Apache-2.0
// A simple linear_q4gsw as a baseline: the weight as in the file, one byte a load, one workgroup for an output, and one invocation
// that adds up the partial sums. No operator uses it; it shows how much faster the product's kernels are.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#pragma variant DTYPE f32 f16
#include "core/launch.glslh"

#if defined(DTYPE_f32)
#define ELEMENT float
#else
#define ELEMENT float16_t
#endif
layout(set = 0, binding = 0) writeonly buffer Out { ELEMENT out_[]; };
layout(set = 0, binding = 1) readonly buffer X { ELEMENT x_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { uint8_t weight_[]; };
layout(set = 0, binding = 3) readonly buffer Scale { ELEMENT scale_[]; };
layout(set = 0, binding = 4) readonly buffer Zero { int8_t zero_[]; };
layout(set = 0, binding = 5) readonly buffer Bias { ELEMENT bias_[]; };
layout(push_constant) uniform Params {
  uint m;
  uint n;
  uint k;
  uint group;
} params;
layout(constant_id = 1) const uint HAS_ZERO = 0u;
layout(constant_id = 2) const uint HAS_BIAS = 0u;

shared float sums_[256];

void main() {
  const uint m = group() / params.n, n = group() - m * params.n;
  if (m >= params.m) return;  // the whole workgroup
  const uint row_bytes = (params.k + 1u) / 2u, groups = params.k / params.group;
  float sum = 0.0;
  for (uint byte = lane(); byte < row_bytes; byte += LANES) {
    const uint pair = uint(weight_[n * row_bytes + byte]);
    for (uint i = 0u; i < 2u; ++i) {
      const uint k = 2u * byte + i;
      if (k >= params.k) break;
      const uint at = n * groups + k / params.group;
      const float zero = HAS_ZERO != 0u ? float(int(zero_[at])) : 0.0;
      sum += float(x_[m * params.k + k]) * ((float(pair >> (4u * i) & 15u) - 8.0 - zero) * float(scale_[at]));
    }
  }
  sums_[lane()] = sum;
  barrier();
  if (lane() != 0u) return;
  for (uint i = 1u; i < LANES; ++i) sum += sums_[i];
  if (HAS_BIAS != 0u) sum += float(bias_[n]);
  out_[m * params.n + n] = ELEMENT(sum);
}
