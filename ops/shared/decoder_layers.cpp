// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/decoder_layers.h"

#include <algorithm>

#include "glsl/decoder_layers.h"
#include "graph/ports.h"
#include "ops/shared/decoder_match.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"
#include "vulkan/kernel_family.h"

namespace pumice::engine {
namespace {

using Params = glsl::decoder_layers::Params;
using PRODUCT = glsl::decoder_layers::PRODUCT;
constexpr uint32_t kTableColumns = 18;  // of glsl/decoder_layers.glsl

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
  const bool fragments = s.product == PRODUCT::fragments;
  const uint32_t longest = fragments ? s.hidden : std::max({s.hidden, s.attended, s.feed});
  const uint64_t row = std::max<uint64_t>(longest / 8, slots * 32) * 16;
  const uint64_t sums = 2ull * s.sum_slots * 64;
  const uint64_t weights = fragments ? 0 : s.attention_lanes * rows * 4;
  const uint64_t attention = rows * e8 * 32 + (e8 + v8) * 32 + weights + subgroups * rows * (8 + v8 * 32) + 16;
  const uint64_t lanes = s.lanes * uint64_t{4 + 16 + 4 + 8};  // norms, heads, their sums, best tokens
  return row + sums + attention + lanes + 3 * kTableColumns * 8 + 64;
}

// Whether waits are much of a layer's time. H200, tokens/s, merged against single kernels: layers of 38 MB 1805 against
// 1511 (16 of them), of 123 MB 1608 against 1691 (8). Where between them it changes, and where on other devices, was
// not measured.
bool is_small(const DecoderLayer& l) {
  constexpr uint64_t kBytes = 64 << 20;
  uint64_t bytes = 0;
  for (const ProductPhase* p : {l.qkv, l.out, l.feed, l.down}) bytes += p->weight.n * row_bytes(p->weight);
  return bytes <= kBytes;
}

// Empty where the device does not run the kernel at these sizes, or is a GPU without fragments: `plain` is for tests on
// CPU drivers. H200, Llama's 1B shape, tokens/s with PUMICE_FEATURES=-fragments: 835 so, 1218 of single kernels.
std::optional<Sizes> sizes_of(const DecoderLayer& l, const Features& features) {
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
                    head_lanes(c) <= s.lanes && may_run(glsl::decoder_layers::variant(s.product), features);
  return fits ? std::optional(s) : std::nullopt;
}

// Some 0.5 us each on a GPU, where a step of 4 GB takes a few thousand; on a CPU a thread may be away for long.
uint32_t patience(const Features& features) {
  return features.compute_units < 16 ? 1u << 25 : 60'000;
}

Params params_of(const DecoderLayer& l, const Sizes& s, uint32_t layers, const Features& features) {
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

void add_row(const DecoderLayer& l, std::vector<TableEntry>& table) {
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

// The last row of the table, of a step.
void add_head(const DecoderStep& step, std::vector<TableEntry>& table) {
  const SamplePhase& sample = *step.sample;
  const PackedWeight& head = step.head->weight;
  const auto& packed = step.embedding->packed;
  const size_t begin = table.size();
  for (const Tensor& tensor :
       {step.head->epilogue.norm, head.weight, head.scale, packed ? packed->weight : step.embedding->rows,
        packed ? packed->scale : step.embedding->rows, sample.options, sample.counts, sample.new_token, sample.new_step,
        sample.new_made, sample.new_position})
    table.push_back({.tensor = tensor.id()});
  table.resize(begin + kTableColumns);
  table[begin + kTableColumns - 2].number = u32(sample.made.dim(1));
  table[begin + kTableColumns - 1].number = sample.call;
}

void set_constants(Launch& launch, const DecoderLayer& l, const Sizes& s, const DecoderStep* step) {
  const Caches& c = l.attention->caches;
  launch.over_groups(s.workgroups, s.lanes);
  few_rows_constants(launch, c, s.rows);
  launch.spec.insert(launch.spec.end(),
                     {head_lanes(c), bool(c.cos), bool(c.q_norm), bool(c.k_norm), c.tables(), c.interleaved,
                      s.attention_lanes, s.workgroups, s.hidden, s.qkv, s.attended, s.feed, s.group,
                      static_cast<uint32_t>(l.feed->epilogue.act), bool(l.qkv->epilogue.bias), s.sum_slots,
                      step ? step->head->weight.n : 0, step == nullptr || step->embedding->packed});
  launch.shader = &glsl::decoder_layers::variant(s.product);
}

// `step`: round the layers, or null.
Merged merge(const Graph& graph, const std::vector<DecoderLayer>& layers, const Sizes& s, const DecoderStep* step) {
  using Kind = MergedBinding::Kind;
  const DecoderLayer &first = layers.front(), &last = layers.back();
  const Caches& c = first.attention->caches;
  Launch launch(graph.features(), graph);
  set_constants(launch, first, s, step);
  Params params = params_of(first, s, static_cast<uint32_t>(layers.size()), graph.features());
  if (step) params.head_eps = step->head->epilogue.eps;
  launch.params(params);
  Merged merged{.first = step ? step->nodes.front().node : first.nodes[0].node,
                .last = step ? step->nodes.back().node : last.nodes[kLayerNodes - 1].node,
                .name = format(step ? "steps of a decoder, %zu layers" : "%zu layers of a decoder", layers.size()),
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
  const uint32_t out = last.nodes[kLayerNodes - 1].writes[0], x = first.nodes[0].reads[kX];
  const uint32_t status = first.nodes[1].writes.back();
  const uint64_t words = s.hidden + s.qkv / 2 + s.attended / 2 + s.feed / 2 + 2 * s.workgroups;
  const uint64_t partial = uint64_t{s.workgroups} * static_cast<uint64_t>(s.rows * (c.value_size() / 4 + 1)) * 16;
  merged.bindings = {{Kind::tensor, out, 0},          {Kind::scratch, kNone, words * 8},
                     {Kind::scratch, kNone, partial}, {Kind::scratch, kNone, uint64_t{s.workgroups} * 4},
                     {Kind::scratch, kNone, 16},      {Kind::tensor, status, 0},
                     {Kind::table, kNone, 0},         {Kind::tensor, x, 0},
                     {Kind::tensor, c.first.id(), 0}, {step ? Kind::steps : Kind::scratch, kNone, kStepBytes}};
  merged.status = 5;
  merged.runs_steps = step != nullptr;
  merged.results = {status};
  if (!step) merged.results.push_back(out);
  for (const DecoderLayer& l : layers) {
    add_row(l, merged.table);
    merged.rows.push_back(l.attention->new_keys.id());
    merged.rows.push_back(l.attention->new_values.id());
  }
  merged.results.insert(merged.results.end(), merged.rows.begin(), merged.rows.end());
  if (!step) return merged;
  add_head(*step, merged.table);
  for (const Tensor& tensor :
       {step->sample->new_made, step->sample->new_token, step->sample->new_position, step->sample->new_step})
    merged.results.push_back(tensor.id());
  return merged;
}

}  // namespace

std::vector<Merged> merge_decoder_layers(const Graph& graph, std::span<const RunningNode> nodes, bool steps) {
  std::vector<Merged> result;
  const Features& features = graph.features();
  if (!features.has(Feature::persistent) || features.cpu) return result;
  for (size_t n = 0; n < nodes.size(); ++n) {
    const std::vector<DecoderLayer> layers = decoder_layers(nodes.subspan(n));
    if (layers.empty()) continue;
    const std::optional<Sizes> sizes = is_small(layers.front()) ? sizes_of(layers.front(), features) : std::nullopt;
    const auto step = steps && sizes ? decoder_step(graph, nodes, layers) : std::nullopt;
    if (sizes) result.push_back(merge(graph, layers, *sizes, step ? &*step : nullptr));
    n += layers.size() * kLayerNodes - 1;
  }
  return result;
}

}  // namespace pumice::engine
