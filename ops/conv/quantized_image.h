// SPDX-License-Identifier: Apache-2.0
// An image that is quantized for one reader, a convolution that can quantize x while it lays it out for its kernel
// (glsl/conv2d_row_taps.glsl): what the first layer of a network of 8-bit integers reads. The integers are the same bit
// for bit.
#pragma once

#include <functional>

#include "graph/deferred.h"

namespace pumice::engine {

// clamp(round(x * inverse) + zero, low, high), rounded by STEPS_* of glsl/include/core/modes.glslh.
struct QuantizedImage {
  Tensor x = {};  // f16 or f32
  float inverse = 1, zero = 0, low = 0, high = 0;
  uint32_t steps = 0;
};

// For the operator that quantizes, buffers of the file both: true where `out` has bytes, its only reader is a
// convolution of bytes, and the numbers need no care (is_usual in glsl/include/quant/quantize.glslh). It is then
// deferred (graph/deferred.h), and `write` adds the operator's node where the convolution reads it as it is.
bool defer_quantized_image(Graph& graph, Tensor out, const QuantizedImage& image, std::function<void()> write);
// Of an image that was deferred so; `x` is empty for other values.
QuantizedImage quantized_image(Graph& graph, Tensor value);

}  // namespace pumice::engine
