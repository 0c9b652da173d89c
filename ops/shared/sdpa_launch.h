// SPDX-License-Identifier: Apache-2.0
// The launch of attention by glsl/sdpa.glsl or sdpa_matrix.glsl, for every operator that has attention in it.
#pragma once

#include "ops/shared/head_slice.h"

namespace pumice::engine {

// A call at one shape. `mask`: bool or floats, rank 4, each dimension full or 1; of a call over caches (`positions`)
// the position of each sequence's first row, i32 [B], and `causal` is not set.
struct Attention {
  HeadSlice q, k, v, out;
  bool causal;
  float scale;
  DType dtype;
  Tensor mask;
  bool positions = false, sinks = false;
  bool int8_rows = false;  // k and v are rows of bytes with scales, heads first; their sizes are multiples of 4
  uint32_t window = 0;     // positions that a row sees; 0: all before it
  float softcap = 0;       // 0: none
};

// Throws when the mask is neither bool nor of `dtype`, or not of rank 4.
void check_attention_mask(const Tensor& mask, DType dtype);
// Bindings: out, q, k, v, mask, sinks; where there is no mask or no sinks, q again. With int8_rows then
// scales.
void launch_attention(Launch& launch, const Attention& attention);

}  // namespace pumice::engine
