// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the mean of each channel of its result as one dispatch: between them, a squeeze and
// excite block has nothing else to wait for. Found while the graph is built, among deferred values (graph/deferred.h).
#pragma once

#include "ops/conv/launch.h"

namespace pumice::engine {

// For a convolution whose result a mean reads: true where one kernel computes both. It is then deferred, and `write`
// adds its node where another reader comes first.
bool defer_for_mean(Graph& graph, const ConvLaunch& convolution, std::function<void()> write);

// For a depthwise convolution whose result is deferred: `write` adds the node that writes it and its means [N, C], of
// its dtype, where a mean is its first reader.
void offer_mean(Graph& graph, Tensor value, std::function<void(Tensor means)> write);

// For the mean of each channel of x [N, C, H, W]: true where x was deferred with such means. The convolution then
// writes both. out: [N, C] or [N, C, 1, 1].
bool try_depthwise_mean(Graph& graph, Tensor x, Tensor out);

}  // namespace pumice::engine
