// SPDX-License-Identifier: Apache-2.0
// Pooling between convolutions: from channels-last to channels-last, where the values are so
// (ops/conv/channels_last.h).
#pragma once

#include "ops/shared/pooling.h"

namespace pumice::engine {

// Adds the node of an operator, or defers it to the first reader of the output.
void image_pooling(Graph& graph, const Pooling& pooling);

// For the mean of each channel of x [N, C, H, W], floats: adds the node where x is channels-last, or only read here and
// can be written so; else it does nothing and returns false. out: [N, C] or [N, C, 1, 1].
bool try_image_mean(Graph& graph, const char* op, Tensor x, Tensor out);

}  // namespace pumice::engine
