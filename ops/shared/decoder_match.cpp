// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/decoder_match.h"

#include <algorithm>

namespace pumice::engine {
namespace {

template <class P>
const P* phase(const RunningNode& node) {
  return node.dispatch == nullptr ? nullptr : dynamic_cast<const P*>(node.dispatch->phase.get());
}

bool is_packed_so(const ProductPhase& p, uint32_t group) {
  const PackedWeight& w = p.weight;
  return p.dtype == DType::f16 && w.type == WeightType::q4 && w.scale_f16 && !w.zero && !w.texture &&
         w.group == group && group % 32 == 0 && group != 0 && w.k % kTileColumns == 0 && w.k % group == 0 &&
         w.n % kPanelRows == 0 && !p.epilogue.rows;
}

bool is_normed(const ProductPhase& p, bool gated) {
  const Epilogue& e = p.epilogue;
  return e.norm && !e.residual && e.gated == gated && (gated ? !e.bias : e.act == 0);
}

bool is_into_x(const ProductPhase& p) {
  const Epilogue& e = p.epilogue;
  return !e.norm && e.residual && !e.gated && !e.bias && e.act == 0;
}

// The layer whose five nodes begin at `nodes`.
std::optional<DecoderLayer> layer_at(std::span<const RunningNode> nodes) {
  if (nodes.size() < kLayerNodes) return std::nullopt;
  const DecoderLayer l{.qkv = phase<ProductPhase>(nodes[0]),
                       .out = phase<ProductPhase>(nodes[2]),
                       .feed = phase<ProductPhase>(nodes[3]),
                       .down = phase<ProductPhase>(nodes[4]),
                       .attention = phase<AttentionPhase>(nodes[1]),
                       .nodes = nodes.data()};
  if (!l.qkv || !l.out || !l.feed || !l.down || !l.attention) return std::nullopt;
  const uint32_t group = l.qkv->weight.group;
  for (const ProductPhase* p : {l.qkv, l.out, l.feed, l.down})
    if (!is_packed_so(*p, group)) return std::nullopt;
  if (!is_normed(*l.qkv, false) || !is_into_x(*l.out) || !is_normed(*l.feed, true) || !is_into_x(*l.down))
    return std::nullopt;
  const auto read = [&](size_t node, size_t position) { return nodes[node].reads[position]; };
  const auto written = [&](size_t node) { return nodes[node].writes[0]; };
  const bool chained = read(1, 0) == written(0) && read(1, 1) == written(0) && read(1, 2) == written(0) &&
                       read(2, kX) == written(1) && read(2, kResidual) == read(0, kX) && read(3, kX) == written(2) &&
                       read(4, kX) == written(3) && read(4, kResidual) == written(2);
  const Caches& c = l.attention->caches;
  const bool plain = c.q.dtype() == DType::f16 && !c.int8() && !c.sinks && c.batch() == 1 && c.value_size() % 8 == 0 &&
                     l.out->weight.k == c.heads * c.value_size() && l.feed->weight.n == 2 * l.down->weight.k &&
                     l.out->weight.n == l.qkv->weight.k && l.down->weight.n == l.qkv->weight.k &&
                     l.feed->weight.k == l.qkv->weight.k;
  return chained && plain ? std::optional(l) : std::nullopt;
}

// Whether the kernel that is made for layer `a` takes layer `b`.
bool is_alike(const DecoderLayer& a, const DecoderLayer& b) {
  const auto same_weight = [](const ProductPhase& x, const ProductPhase& y) {
    return x.weight.n == y.weight.n && x.weight.k == y.weight.k && x.weight.group == y.weight.group &&
           x.epilogue.eps == y.epilogue.eps && x.epilogue.act == y.epilogue.act &&
           bool(x.epilogue.bias) == bool(y.epilogue.bias);
  };
  const Caches &c = a.attention->caches, &d = b.attention->caches;
  return same_weight(*a.qkv, *b.qkv) && same_weight(*a.out, *b.out) && same_weight(*a.feed, *b.feed) &&
         same_weight(*a.down, *b.down) && c.key_cache.shape() == d.key_cache.shape() &&
         c.value_cache.shape() == d.value_cache.shape() && c.first.id() == d.first.id() && c.heads == d.heads &&
         std::equal(c.begin, c.begin + 3, d.begin) && c.scale == d.scale && c.softcap == d.softcap &&
         c.window == d.window && c.eps == d.eps && c.tables() == d.tables() && c.angles() == d.angles() &&
         c.angle_rows() == d.angle_rows() && bool(c.q_norm) == bool(d.q_norm) && bool(c.k_norm) == bool(d.k_norm) &&
         c.interleaved == d.interleaved;
}

// Whether a step leaves `made` in `old`, in place, for the next one.
bool is_carried(const Graph::Impl& graph, const Tensor& old, const Tensor& made) {
  const auto is_it = [&](const Update& update) {
    return graph.view_root(update.state) == graph.view_root(old.id()) &&
           graph.view_root(update.value) == graph.view_root(made.id());
  };
  const std::vector<Update>& all = graph.method().updates;
  return std::any_of(all.begin(), all.end(), is_it) && graph.memory_root(old.id()) == graph.memory_root(made.id());
}

}  // namespace

std::vector<DecoderLayer> decoder_layers(std::span<const RunningNode> nodes) {
  std::vector<DecoderLayer> layers;
  for (size_t at = 0; const std::optional<DecoderLayer> layer = layer_at(nodes.subspan(at)); at += kLayerNodes) {
    const bool goes_on =
        layers.empty() || (is_alike(layers.front(), *layer) &&
                           layer->nodes[0].reads[kX] == layers.back().nodes[kLayerNodes - 1].writes[0]);
    if (!goes_on) break;
    layers.push_back(*layer);
  }
  return layers;
}

std::optional<DecoderStep> decoder_step(const Graph& graph, std::span<const RunningNode> nodes,
                                        const std::vector<DecoderLayer>& layers) {
  const size_t head = 1 + kLayerNodes * layers.size(), sample = head + 1;
  if (nodes.size() != sample + kSampleNodes || layers.front().nodes != &nodes[1]) return std::nullopt;
  const DecoderStep step{.embedding = phase<EmbeddingPhase>(nodes[0]),
                         .head = phase<ProductPhase>(nodes[head]),
                         .sample = phase<SamplePhase>(nodes[sample]),
                         .nodes = nodes};
  if (!step.embedding || !step.head || !step.sample) return std::nullopt;
  for (size_t n = sample; n < nodes.size(); ++n)
    if (phase<SamplePhase>(nodes[n]) != step.sample) return std::nullopt;
  const DecoderLayer& first = layers.front();
  const ProductPhase& qkv = *first.qkv;
  const Caches& c = first.attention->caches;
  const auto root = [&](const Tensor& tensor) { return graph.impl().view_root(tensor.id()); };
  const bool chained =
      nodes[0].writes[0] == first.nodes[0].reads[kX] && nodes[0].reads[1] == root(step.sample->token) &&
      layers.back().nodes[kLayerNodes - 1].writes[0] == nodes[head].reads[kX] &&
      nodes[head].writes[0] == root(step.sample->logits) && root(c.first) == root(step.sample->position);
  const SamplePhase& s = *step.sample;
  const bool carried = is_carried(graph.impl(), s.made, s.new_made) && is_carried(graph.impl(), s.token, s.new_token) &&
                       is_carried(graph.impl(), s.position, s.new_position) &&
                       is_carried(graph.impl(), s.step, s.new_step);
  const auto& packed = step.embedding->packed;
  const bool packed_so = !packed || (packed->type == WeightType::q4 && packed->scale_f16 && !packed->zero &&
                                     !packed->texture && packed->group == qkv.weight.group);
  const bool plain = packed_so && step.embedding->dtype == DType::f16 && step.embedding->k == qkv.weight.k &&
                     step.embedding->n >= step.head->weight.n && is_packed_so(*step.head, qkv.weight.group) &&
                     is_normed(*step.head, false) && !step.head->epilogue.bias && step.head->weight.k == qkv.weight.k &&
                     (!c.cos || c.tables());
  return chained && carried && plain ? std::optional(step) : std::nullopt;
}

}  // namespace pumice::engine
