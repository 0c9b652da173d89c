// SPDX-License-Identifier: Apache-2.0
#include "graph/pipelines.h"

#include <algorithm>
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
  for (const std::vector<int64_t>& symbols : corners(graph.impl().method())) {
    deadline.require(Stage::plan, "the pipelines of other sizes");
    try {
      infer(graph, symbols);
      check_pipelines(graph);
      std::ranges::move(run_pipelines(graph), std::back_inserter(keys));
    } catch (const Error&) {  // no run has these sizes, or the device does not take them
    }
  }
  return keys;
}

}  // namespace pumice::engine
