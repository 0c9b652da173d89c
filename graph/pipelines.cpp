// SPDX-License-Identifier: Apache-2.0
#include "graph/pipelines.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "graph/bind.h"
#include "graph/infer.h"
#include "graph/merge.h"
#include "graph/need.h"

namespace pumice::engine {
namespace {

constexpr size_t kMostFree = 3;  // symbols that take these values one by one; more take them together

std::vector<std::vector<int64_t>> corners(const Method& method) {
  const auto values = [](const Symbol& symbol) { return std::array{symbol.max, symbol.min, symbol.hint}; };
  const std::vector<Symbol>& symbols = method.symbols;
  size_t count = symbols.empty() ? 0 : 3;
  if (symbols.size() <= kMostFree)
    for (size_t s = 1; s < symbols.size(); ++s) count *= 3;
  std::vector<std::vector<int64_t>> all(count);
  for (size_t i = 0; i < count; ++i) {
    size_t left = i;
    for (const Symbol& symbol : symbols) {
      all[i].push_back(values(symbol)[left % 3]);
      if (symbols.size() <= kMostFree) left /= 3;
    }
  }
  return all;
}

// Powers of two between a symbol's ends, the largest first, while all others are at their least, then at their largest.
std::vector<std::vector<int64_t>> sizes_between(const Method& method) {
  std::vector<std::vector<int64_t>> all;
  for (size_t s = 0; s < method.symbols.size(); ++s) {
    const Symbol& symbol = method.symbols[s];
    if (symbol.max < 2) continue;
    for (uint64_t value = std::bit_floor(static_cast<uint64_t>(symbol.max - 1)); value > 0; value /= 2) {
      if (static_cast<int64_t>(value) <= symbol.min) break;
      for (const auto end : {&Symbol::min, &Symbol::max}) {
        std::vector<int64_t>& sizes = all.emplace_back();
        for (const Symbol& other : method.symbols) sizes.push_back(other.*end);
        sizes[s] = static_cast<int64_t>(value);
        if (method.symbols.size() == 1) break;
      }
    }
  }
  return all;
}

void add_pipelines(Graph& graph, const std::vector<int64_t>& symbols, std::vector<PipelineKey>& keys) {
  try {
    infer(graph, symbols);
    check_pipelines(graph);
    std::ranges::move(run_pipelines(graph), std::back_inserter(keys));
  } catch (const Error&) {  // no run has these sizes, or the device does not take them
  }
}

}  // namespace

std::vector<PipelineKey> pack_pipelines(const Graph& graph) {
  std::vector<PipelineKey> keys;
  for (const PackedConstant& packed : graph.impl().packed_constants) {
    for (const Dispatch& dispatch : launch(graph, packed.launch, packed.inputs.size() + 1)) {
      if (dispatch.runs()) keys.push_back(pipeline_key(dispatch));
    }
  }
  return keys;
}

std::vector<PipelineKey> run_pipelines(const Graph& graph) {
  const std::vector<Node>& nodes = graph.impl().nodes;
  std::vector<bool> merged(nodes.size());
  for (const auto& each : find_merged(graph, false, [](uint32_t) { return true; }))
    std::fill(merged.begin() + each->first, merged.begin() + each->last + 1, true);
  std::vector<PipelineKey> keys;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (merged[n]) continue;
    for (const Dispatch& dispatch : nodes[n].dispatches) keys.push_back(pipeline_key(dispatch));
  }
  return keys;
}

std::vector<PipelineKey> bound_pipelines(Graph& graph, const Deadline& deadline) {
  std::vector<PipelineKey> keys;
  const Method& method = graph.impl().method();
  for (const std::vector<int64_t>& symbols : corners(method)) {
    deadline.require(Stage::plan, "the pipelines of other sizes");
    add_pipelines(graph, symbols, keys);
  }
  for (const std::vector<int64_t>& symbols : sizes_between(method)) {
    try {
      deadline.require(Stage::plan, "the pipelines of sizes in between");
    } catch (const Error&) {
      break;  // those that there are are worth having
    }
    add_pipelines(graph, symbols, keys);
  }
  return keys;
}

}  // namespace pumice::engine
