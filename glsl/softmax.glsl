// SPDX-License-Identifier: Apache-2.0
// out[row] = exp(x[row] - max) / sum(exp(x[row] - max)) over the last dimension, or (LOG) x[row] - max - log(sum(...)).
// Bindings: 0 out, 1 in.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#include "core/types.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(push_constant) uniform Params {
  uint rows;
  uint width;
} params;

#define SOFTMAX_SCORES(q) LOAD4(DTYPE, in_, q)
#define SOFTMAX_SCORE(i) LOAD1(DTYPE, in_, i)
#include "math/softmax.glslh"

void main() { softmax_rows(params.rows, params.width); }
