// SPDX-License-Identifier: Apache-2.0
#include "graph/pipelines.h"

#include <algorithm>

#include "graph/bind.h"
#include "graph/infer.h"
#include "graph/merge.h"

namespace pumice::engine {

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

}  // namespace pumice::engine
