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

// The operators that ops/linear/linear_node.h builds, and which argument is the residual; x is the first.
struct Reader {
  std::string_view name;
  uint32_t residual;
};
constexpr std::array<Reader, 4> kReaders = {
    {{"linear", 4}, {"linear_q4gsw", 7}, {"linear_q8gsw", 7}, {"linear_q8csw", 6}}};

bool is_of_linear(const Graph& graph, const Use& use) {
  const auto* const found = std::ranges::find(kReaders, reader(graph, use), &Reader::name);
  return found != kReaders.end() && (use.argument == 0 || use.argument == found->residual);
}

}  // namespace

bool RowMoments::left(const Launch& launch) const {
  return possible && possible(launch) &&
         std::ranges::any_of(norms, [&](const LayerNormX* norm) { return norm->is_fused(launch); });
}

bool LayerNormX::is_fused(const Launch& launch) const {
  return x && normed.size() == readers &&
         std::ranges::all_of(normed, [&](const Condition& each) { return each(launch); });
}

MomentsOf LayerNormX::moments_at(const Launch& launch) const {
  return moments != nullptr && moments->possible && moments->possible(launch) ? MomentsOf::left : MomentsOf::found;
}

LayerNormX& layer_norm_of(Graph& graph, Tensor value) {
  return *graph.shared<LayerNormX>("layer norm " + std::to_string(value.id()));
}

RowMoments& moments_of(Graph& graph, Tensor value) {
  return *graph.shared<RowMoments>("moments " + std::to_string(value.id()));
}

bool is_layer_normed(const Graph& graph, Tensor value) {
  return std::ranges::any_of(uses_of(graph, value),
                             [&](const Use& use) { return use.argument == 0 && reader(graph, use) == "layer_norm"; });
}

LayerNormX& note_layer_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias, double eps) {
  LayerNormX& noted = layer_norm_of(graph, out);
  const bool fits = weight && weight.is_constant() && bias && bias.is_constant();
  if (!fits) return noted;
  const std::vector<Use>& uses = uses_of(graph, out);
  if (!std::ranges::all_of(uses, [&](const Use& use) { return is_of_linear(graph, use); })) return noted;
  RowMoments& moments = moments_of(graph, x);
  noted = {x, weight, bias, static_cast<float>(eps), &moments, static_cast<uint32_t>(uses.size())};
  moments.norms.push_back(&noted);
  return noted;
}

Tensor pack_layer_norm(Graph& graph, const LayerNormX& norm) {
  const int64_t k = norm.weight.numel();
  const DType dtype = norm.weight.dtype();
  const std::vector<Tensor> parts = {norm.weight, norm.bias, norm.bias, norm.bias};  // the last two are never read
  return graph.prepack("layer norm", parts, dtype, {2, k}, [=](Launch& launch) {
    using namespace glsl::cat;
    const uint32_t one = u32(k), both = u32(2 * k);
    launch.params(Params{.count = both, .end0 = one, .end1 = both, .end2 = both, .end3 = both});
    launch.shader = &variant(bits<BITS>(dtype));
    launch.over((both + 3) / 4);
    launch.spec.push_back(one % 4 == 0);
  });
}

}  // namespace pumice::engine
