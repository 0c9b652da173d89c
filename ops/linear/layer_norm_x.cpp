// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/layer_norm_x.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "glsl/cat.h"
#include "graph/deferred.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// The operators that ops/linear/linear_node.h builds; x is the first argument.
constexpr std::array<std::string_view, 4> kReaders = {"linear", "linear_q4gsw", "linear_q8gsw", "linear_q8csw"};

bool is_x_of_linear(const Graph& graph, const Use& use) {
  return use.argument == 0 && std::ranges::find(kReaders, reader(graph, use)) != kReaders.end();
}

}  // namespace

bool LayerNormX::runs(const Launch& launch) const {
  return normed.size() != readers || !std::ranges::all_of(normed, [&](const auto& each) { return each(launch); });
}

std::shared_ptr<LayerNormX> layer_norm_of(Graph& graph, Tensor value) {
  return graph.shared<LayerNormX>("layer norm " + std::to_string(value.id()));
}

std::shared_ptr<LayerNormX> note_layer_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias,
                                            double eps) {
  const auto noted = layer_norm_of(graph, out);
  const bool fits = weight && weight.is_constant() && bias && bias.is_constant() && x.dtype() == DType::f16;
  if (!fits || !graph.features().has(Feature::fragments)) return noted;
  const std::vector<Use>& uses = uses_of(graph, out);
  if (std::ranges::all_of(uses, [&](const Use& use) { return is_x_of_linear(graph, use); }))
    *noted = {x, weight, bias, static_cast<float>(eps), static_cast<uint32_t>(uses.size()), {}};
  return noted;
}

Tensor pack_layer_norm(Graph& graph, const LayerNormX& norm) {
  const int64_t k = norm.weight.numel();
  const std::vector<Tensor> parts = {norm.weight, norm.bias, norm.bias, norm.bias};  // the last two are never read
  return graph.prepack("layer norm", parts, norm.weight.dtype(), {2, k}, [=](Launch& launch) {
    using namespace glsl::cat;
    const uint32_t one = u32(k), both = u32(2 * k);
    launch.params(Params{.count = both, .end0 = one, .end1 = both, .end2 = both, .end3 = both});
    launch.shader = &variant(bits<BITS>(norm.weight.dtype()));
    launch.over((both + 3) / 4);
    launch.spec.push_back(one % 4 == 0);
  });
}

}  // namespace pumice::engine
