// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/decoder_layers.h"

#include <algorithm>
#include <optional>

#include "glsl/decoder_layers.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

using Params = glsl::decoder_layers::Params;
using PRODUCT = glsl::decoder_layers::PRODUCT;
constexpr size_t kNodes = 5;            // of a layer
constexpr uint32_t kTableColumns = 18;  // of glsl/decoder_layers.glsl
// Positions of linear_reads.
constexpr size_t kX = 0, kResidual = 3;

struct Layer {
  const ProductPhase *qkv, *out, *feed, *down;
  const AttentionPhase* attention;
  const RunningNode* nodes;  // kNodes
};

const ProductPhase* product(const RunningNode& node) {
  return node.dispatch == nullptr ? nullptr : dynamic_cast<const ProductPhase*>(node.dispatch->phase.get());
}
const AttentionPhase* attention(const RunningNode& node) {
  return node.dispatch == nullptr ? nullptr : dynamic_cast<const AttentionPhase*>(node.dispatch->phase.get());
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
std::optional<Layer> layer_at(std::span<const RunningNode> nodes) {
  if (nodes.size() < kNodes) return std::nullopt;
  const Layer l{.qkv = product(nodes[0]),
                .out = product(nodes[2]),
                .feed = product(nodes[3]),
                .down = product(nodes[4]),
                .attention = attention(nodes[1]),
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
bool is_alike(const Layer& a, const Layer& b) {
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

struct Sizes {
  PRODUCT product;
  uint32_t lanes, attention_lanes, workgroups, splits, hidden, qkv, attended, feed, group, sum_slots;
  int64_t rows;  // query rows of a head of the caches
};

constexpr uint32_t panels_of(uint32_t units, uint32_t workgroups, uint32_t unit) {
  return (units + workgroups - 1) / workgroups * unit;
}

uint64_t shared_bytes(const Sizes& s, const Caches& c, const Features& features) {
  const uint64_t slots = s.lanes / 32, subgroups = s.attention_lanes / features.subgroup_size;
  const uint64_t rows = static_cast<uint64_t>(s.rows), e8 = u32(c.key_size() / 8), v8 = u32(c.value_size() / 8);
  const uint64_t row = std::max<uint64_t>(s.hidden / 8, slots * 32) * 16;
  const uint64_t sums = 2ull * s.sum_slots * 64;
  const uint64_t weights = s.product == PRODUCT::fragments ? 0 : s.attention_lanes * rows * 4;
  const uint64_t attention = rows * e8 * 32 + (e8 + v8) * 32 + weights + subgroups * rows * (8 + v8 * 32) + 16;
  const uint64_t lanes = s.lanes * uint64_t{4 + 16 + 4};  // norms, heads, their sums
  return row + sums + attention + lanes + 2 * kTableColumns * 8 + 64;
}

// Whether waits are much of a layer's time. H200, tokens/s, merged against single kernels: layers of 38 MB 1805 against
// 1511 (16 of them), of 123 MB 1608 against 1691 (8). Where between them it changes, and where on other devices, was
// not measured.
bool is_small(const Layer& l) {
  constexpr uint64_t kBytes = 64 << 20;
  uint64_t bytes = 0;
  for (const ProductPhase* p : {l.qkv, l.out, l.feed, l.down}) bytes += p->weight.n * row_bytes(p->weight);
  return bytes <= kBytes;
}

// Empty where the device does not run the kernel at these sizes.
std::optional<Sizes> sizes_of(const Layer& l, const Features& features) {
  const Caches& c = l.attention->caches;
  const bool fragments = features.has(Feature::fragments) && features.subgroup_size == 32 &&
                         features.runs(glsl::decoder_layers::variant(PRODUCT::fragments));
  Sizes s{.product = fragments ? PRODUCT::fragments : PRODUCT::plain,
          .lanes = fragments ? 512u : 256u,
          .attention_lanes = 256,
          .workgroups = std::min(features.compute_units, l.down->weight.k / kPanelRows),  // each has rows of h
          .splits = 1,
          .hidden = l.qkv->weight.k,
          .qkv = l.qkv->weight.n,
          .attended = l.out->weight.k,
          .feed = l.down->weight.k,
          .group = l.qkv->weight.group,
          .sum_slots = 0,
          .rows = few_rows(c, features)};
  const uint32_t heads = u32(c.kv_heads());
  if (s.rows == 0 || s.lanes > features.max_invocations || s.workgroups < heads) return std::nullopt;
  s.splits = std::min(s.workgroups / heads, u32(cache_splits(c, features)));
  const uint32_t into_x = panels_of(s.hidden / kPanelRows, s.workgroups, 1);
  s.sum_slots = std::max({s.lanes / 32, panels_of(s.qkv / kPanelRows, s.workgroups, 1), into_x,
                          panels_of(s.feed / kPanelRows, s.workgroups, 2)});
  if (!fragments && shared_bytes(s, c, features) > features.max_shared_bytes) s.lanes = s.attention_lanes = 128;
  const bool fits = shared_bytes(s, c, features) <= features.max_shared_bytes && 4 * into_x <= s.lanes &&
                    head_lanes(c) <= s.lanes && features.runs(glsl::decoder_layers::variant(s.product));
  return fits ? std::optional(s) : std::nullopt;
}

// Some 0.5 us each on a GPU, where a step of 4 GB takes a few thousand; on a CPU a thread may be away for long.
uint32_t patience(const Features& features) {
  return features.compute_units < 16 ? 1u << 25 : 60'000;
}

Params params_of(const Layer& l, const Sizes& s, uint32_t layers, const Features& features) {
  const Caches& c = l.attention->caches;
  Params params{};
  params.batches = 1;
  params.heads = u32(c.heads);
  params.kv_heads = u32(c.kv_heads());
  params.s = u32(c.capacity());
  params.splits = s.splits;
  params.scale = c.scale;
  params.window = c.window;
  params.softcap = c.softcap;
  params.rotated = u32(c.rotated());
  params.eps = c.eps;
  params.q_begin = u32(c.begin[0] / 4);
  params.k_begin = u32(c.begin[1] / 4);
  params.v_begin = u32(c.begin[2] / 4);
  params.angle_rows = c.angle_rows();
  params.layers = layers;
  params.attention_eps = l.qkv->epilogue.eps;
  params.feed_eps = l.feed->epilogue.eps;
  params.patience = std::min(patience(features), features.max_waits);
  params.call = l.attention->call;
  return params;
}

void add_row(const Layer& l, std::vector<TableEntry>& table) {
  const size_t begin = table.size();
  const auto add = [&](uint32_t tensor) { table.push_back({.tensor = tensor}); };
  const auto id = [](const Tensor& tensor) { return tensor ? tensor.id() : kNone; };
  const Caches& c = l.attention->caches;
  add(id(l.qkv->epilogue.norm));
  for (const ProductPhase* p : {l.qkv, l.out, l.feed, l.down}) {
    if (p == l.feed) add(id(l.feed->epilogue.norm));
    add(id(p->weight.weight));
    add(id(p->weight.scale));
    if (p == l.qkv) add(id(l.qkv->epilogue.bias));
  }
  for (const Tensor& tensor : {l.attention->new_keys, l.attention->new_values, c.cos, c.sin, c.q_norm, c.k_norm})
    add(id(tensor));
  table.push_back({.tensor = kNone, .number = l.attention->call});
  if (table.size() - begin != kTableColumns)
    fail(Code::Internal, Stage::plan, "", "a row of the table has %zu columns", table.size() - begin);
}

void set_constants(Launch& launch, const Layer& l, const Sizes& s) {
  const Caches& c = l.attention->caches;
  launch.over_groups(s.workgroups, s.lanes);
  few_rows_constants(launch, c, s.rows);
  launch.spec.insert(launch.spec.end(),
                     {head_lanes(c), bool(c.cos), bool(c.q_norm), bool(c.k_norm), c.tables(), c.interleaved,
                      s.attention_lanes, s.workgroups, s.hidden, s.qkv, s.attended, s.feed, s.group,
                      static_cast<uint32_t>(l.feed->epilogue.act), bool(l.qkv->epilogue.bias), s.sum_slots});
  launch.shader = &glsl::decoder_layers::variant(s.product);
}

Merged merge(const Graph& graph, const std::vector<Layer>& layers, const Sizes& s, uint32_t status) {
  using Kind = MergedBinding::Kind;
  const Layer &first = layers.front(), &last = layers.back();
  const Caches& c = first.attention->caches;
  Launch launch(graph.features(), graph);
  set_constants(launch, first, s);
  Params params = params_of(first, s, static_cast<uint32_t>(layers.size()), graph.features());
  launch.params(params);
  Merged merged{.first = first.nodes[0].node,
                .last = last.nodes[kNodes - 1].node,
                .name = format("%zu layers of a decoder", layers.size()),
                .dispatch = launch,
                .probe = {},
                .bindings = {},
                .table = {},
                .results = {},
                .rows = {}};
  params.probe = 1;
  params.patience = patience(graph.features());
  launch.params(params);
  merged.probe = launch.push;
  const uint32_t out = last.nodes[kNodes - 1].writes[0], x = first.nodes[0].reads[kX];
  const uint64_t words = s.hidden + s.qkv / 2 + s.attended / 2 + s.feed / 2;
  const uint64_t partial = uint64_t{s.workgroups} * static_cast<uint64_t>(s.rows * (c.value_size() / 4 + 1)) * 16;
  merged.bindings = {{Kind::tensor, out, 0},          {Kind::scratch, kNone, words * 8},
                     {Kind::scratch, kNone, partial}, {Kind::scratch, kNone, uint64_t{s.workgroups} * 4},
                     {Kind::scratch, kNone, 16},      {Kind::tensor, status, 0},
                     {Kind::table, kNone, 0},         {Kind::tensor, x, 0},
                     {Kind::tensor, c.first.id(), 0}};
  merged.status = 5;
  merged.results = {out, status};
  for (const Layer& l : layers) {
    add_row(l, merged.table);
    merged.rows.push_back(l.attention->new_keys.id());
    merged.rows.push_back(l.attention->new_values.id());
  }
  merged.results.insert(merged.results.end(), merged.rows.begin(), merged.rows.end());
  return merged;
}

}  // namespace

std::vector<Merged> merge_decoder_layers(const Graph& graph, std::span<const RunningNode> nodes) {
  std::vector<Merged> result;
  const Features& features = graph.features();
  if (!features.has(Feature::persistent) || features.cpu) return result;
  for (size_t n = 0; n < nodes.size(); ++n) {
    std::vector<Layer> layers;
    for (size_t at = n; const std::optional<Layer> layer = layer_at(nodes.subspan(at)); at += kNodes) {
      const bool goes_on = layers.empty() || (is_alike(layers.front(), *layer) &&
                                              layer->nodes[0].reads[kX] == layers.back().nodes[kNodes - 1].writes[0]);
      if (!goes_on) break;
      layers.push_back(*layer);
    }
    if (layers.empty()) continue;
    const std::optional<Sizes> sizes = is_small(layers.front()) ? sizes_of(layers.front(), features) : std::nullopt;
    if (sizes) result.push_back(merge(graph, layers, *sizes, layers.front().nodes[1].writes.back()));
    n += layers.size() * kNodes - 1;
  }
  return result;
}

}  // namespace pumice::engine
