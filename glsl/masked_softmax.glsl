// SPDX-License-Identifier: Apache-2.0
// The softmax over the last dimension of s, which attention makes of its products: in * number or in / number, + mask,
// and value where the condition is not KEEP. Each step is rounded to DTYPE, as if it were stored. mask, condition and
// value broadcast.
// Bindings: 0 out, 1 in, 2 mask, 3 condition, 4 value; what is not there is bound to anything and not read.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant DTYPE f32 f16
#pragma choice SCALE nothing multiply divide
#include "core/modes.glslh"
#include "core/types.glslh"

layout(constant_id = 3) const uint SCALE = 0;
layout(constant_id = 4) const bool ADDS = false;
layout(constant_id = 5) const bool CHOOSES = false;
layout(constant_id = 6) const bool KEEP = true;
layout(constant_id = 7) const uint MASK_MODE = 0;
layout(constant_id = 8) const uint CONDITION_MODE = 0;
layout(constant_id = 9) const uint VALUE_MODE = 0;

layout(set = 0, binding = 0) writeonly buffer Out { WORD(DTYPE) out_[]; };
layout(set = 0, binding = 1) readonly buffer In { WORD(DTYPE) in_[]; };
layout(set = 0, binding = 2) readonly buffer Mask { WORD(DTYPE) mask_[]; };
layout(set = 0, binding = 3) readonly buffer Condition { WORD(boolean) condition_[]; };
layout(set = 0, binding = 4) readonly buffer Value { WORD(DTYPE) value_[]; };

#include "core/broadcast.glslh"
layout(push_constant) uniform Params {
  BROADCAST_PARAMS
  uint rows;
  uint width;
  uint repeat_mask;
  uint repeat_condition;
  uint repeat_value;
  float number;  // of the scale
  float value;   // where it is a number
  uint zero;     // always; no driver knows that
} params;

BROADCAST_INDEX
OPERAND(load_mask, DTYPE, mask_, MASK_MODE, params.repeat_mask, 0)
OPERAND(load_condition, boolean, condition_, CONDITION_MODE, params.repeat_condition, 0)
OPERAND(load_value, DTYPE, value_, VALUE_MODE, params.repeat_value, params.value)

// A driver that contracted the product with the sum would round once less than PyTorch; params.zero as of rounded_to_f16().
#define ROUNDED(d, v) UNPACK(d, PACK(d, v) ^ params.zero)
vec4 scores(uint q) {
  precise vec4 s = LOAD4(DTYPE, in_, q);
  if (SCALE == SCALE_multiply) s = ROUNDED(DTYPE, s * params.number);
  if (SCALE == SCALE_divide) s = ROUNDED(DTYPE, s / params.number);
  if (ADDS) s = ROUNDED(DTYPE, s + load_mask(q));
  if (CHOOSES) s = mix(load_value(q), s, equal(notEqual(load_condition(q), ivec4(0)), bvec4(KEEP)));
  return s;
}

#define SOFTMAX_SCORES(q) scores(q)
#define SOFTMAX_SCORE(i) scores((i) >> 2)[(i) & 3u]
#include "math/softmax.glslh"

void main() { softmax_rows(params.rows, params.width); }
