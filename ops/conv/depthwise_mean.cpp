// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/depthwise_mean.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "graph/deferred.h"
#include "ops/conv/channels_last.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using WithMeans = std::function<void(Tensor means)>;

std::shared_ptr<WithMeans> known(Graph& graph, Tensor value) {
  return graph.shared<WithMeans>("means of depthwise " + std::to_string(value.id()));
}

// Whether images have one size at every shape of a call; the batch may be any.
bool is_fixed_image(const Graph& graph, Tensor value) {
  return is_fixed(graph, value, 1) && is_fixed(graph, value, 2) && is_fixed(graph, value, 3);
}

}  // namespace

void offer_mean(Graph& graph, Tensor value, std::function<void(Tensor means)> write) {
  *known(graph, value) = std::move(write);
}

bool defer_for_mean(Graph& graph, const ConvLaunch& c, std::function<void()> write) {
  if (c.textures || c.out.rank() != 4) return false;  // a texture is no value of the file
  const auto is_mean = [&](const Use& use) { return reader(graph, use) == "mean"; };
  if (!std::ranges::any_of(uses_of(graph, c.out), is_mean)) return false;
  const bool fixed = is_fixed_image(graph, c.x) && is_fixed_image(graph, c.out);
  if (!fixed || !takes_mean(c, graph.features())) return false;
  offer_mean(graph, c.out, [c, &graph](Tensor means) {
    graph.dispatch({c.out, means}, c.reads(), [c, means](Launch& launch) {
      c.out.resize(c.out_shape());
      means.resize({c.out.dim(0), c.out.dim(1)});
      if (c.out.numel() == 0) return;
      u32(c.x.numel());
      u32(c.out.numel());
      launch_depthwise_mean(launch, c);
    });
  });
  defer(graph, c.out, std::move(write));
  return true;
}

bool try_depthwise_mean(Graph& graph, Tensor x, Tensor out) {
  if (!is_deferred(graph, x) || !*known(graph, x) || x.dtype() != out.dtype()) return false;
  const WithMeans write = std::exchange(*known(graph, x), {});  // another mean of x is one by itself
  const Tensor means = graph.scratch(x.dtype(), 2);
  write_deferred(graph, x, [&] { write(means); }, [] {});  // nothing is left for later: that is the usual layout
  channels_last_of(graph, x)->write = {};
  graph.view(out, means, [=](const Launch&) {
    Shape shape = means.shape();
    shape.resize(out.rank(), 1);
    out.resize(shape);
  });
  return true;
}

}  // namespace pumice::engine
