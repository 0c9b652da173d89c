// SPDX-License-Identifier: Apache-2.0
// image * factors, whose only reader is a convolution that multiplies x while it loads it: the end of a squeeze and
// excite block. What it multiplies is rounded to fp16 as the product would be: the result is the same bit for bit.
#pragma once

#include <functional>

#include "graph/deferred.h"

namespace pumice::engine {

struct ScaledImage {
  Tensor image = {}, factors = {};  // f16 or f32 [N, C, H, W] and [N, C, 1, 1]
};

// For an operator that multiplies a and b: true where `out` is such a product. It is then deferred (graph/deferred.h),
// and `write` adds the operator's node where another reader comes first.
bool defer_scaled_image(Graph& graph, Tensor out, Tensor a, Tensor b, std::function<void()> write);
// Of a product that was deferred so; empty for other values.
ScaledImage scaled_image(Graph& graph, Tensor value);

}  // namespace pumice::engine
