// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution whose channels are last, and the layer norm of each pixel's channels that alone reads it, as
// one dispatch. Found while the graph is built, among deferred values (graph/deferred.h).
#pragma once

#include <functional>

#include "graph/graph.h"
#include "ops/shared/patch.h"

namespace pumice::engine {

struct DepthwiseChannelsLast {
  Tensor x = {}, weight = {}, bias = {}, out = {};  // out is empty where the value is no such convolution
  Patches patches = {};
  uint32_t act = 0;

  Shape out_shape() const;  // live
};

constexpr int64_t kMostDepthwiseSpan = 16;  // columns of x that an invocation keeps in registers
// Columns of x that an invocation reads for so many of the output.
int64_t depthwise_span(const Patches& patches, int64_t columns);
// A workgroup with the norm: strips of the output, each `columns` wide, of all channels of a pixel, which are `vec4s`
// groups of four; and invocations that share a strip.
struct DepthwiseNormWork {
  uint32_t strips, parts;
  uint32_t lanes() const { return strips * parts; }
  uint32_t shared_bytes(uint32_t vec4s, uint32_t columns) const;
};
// `count`: strips of all channels of the whole output.
DepthwiseNormWork depthwise_norm_work(const Patches& patches, int64_t count, uint32_t vec4s, uint32_t columns,
                                      const Features& features);
// The dispatch. `eps`: of the norm; null: without it.
void launch_depthwise(Launch& launch, const DepthwiseChannelsLast& convolution, const double* eps);

// For a convolution: true where only a layer norm reads its result and one kernel computes both. It is then deferred,
// and `write` adds its node where something else comes first.
bool defer_for_norm(Graph& graph, const DepthwiseChannelsLast& convolution, std::function<void()> write);
// For the layer norm of the last dimension of x, with factors or without: true where x was deferred so. The node of
// both is added.
bool try_depthwise_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias, double eps);

}  // namespace pumice::engine
