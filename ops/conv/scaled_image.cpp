// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/scaled_image.h"

#include <memory>
#include <string>
#include <utility>

#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

std::shared_ptr<ScaledImage> known(Graph& graph, Tensor value) {
  return graph.shared<ScaledImage>("scaled image " + std::to_string(value.id()));
}

}  // namespace

bool defer_scaled_image(Graph& graph, Tensor out, Tensor a, Tensor b, std::function<void()> write) {
  if (is_of_channels(graph, a, b)) std::swap(a, b);
  const bool is_scaled = is_of_channels(graph, b, a) && same_shape(graph, a, out);
  if (!is_float(out.dtype()) || !is_scaled || uses_of(graph, out).size() != 1) return false;
  *known(graph, out) = {a, b};
  defer(graph, out, std::move(write));
  return true;
}

ScaledImage scaled_image(Graph& graph, Tensor value) {
  return is_deferred(graph, value) ? *known(graph, value) : ScaledImage{};
}

}  // namespace pumice::engine
