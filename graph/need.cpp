// SPDX-License-Identifier: Apache-2.0
#include "graph/need.h"

#include <algorithm>
#include <cinttypes>
#include <unordered_set>

#include "graph/bind.h"
#include "graph/encode.h"
#include "graph/image_shape.h"
#include "graph/infer.h"
#include "graph/state_undo.h"

namespace pumice::engine {
namespace {

// The pipelines of graphs at their live shapes.
class PipelineCount {
 public:
  void add(std::span<const Dispatch> dispatches) {
    for (const Dispatch& dispatch : dispatches) keys_.insert(pipeline_key(dispatch));
    if (keys_.size() > kMostPipelines)
      fail(Code::LimitExceeded, Stage::plan, "",
           "the file asks for more than %" PRIu64 " different pipelines (kernels with their constants)",
           kMostPipelines);
  }
  void add(const Graph& graph) {
    for (const Node& node : graph.impl().nodes) add(node.dispatches);
  }

 private:
  std::unordered_set<PipelineKey, PipelineKeyHash> keys_;
};

}  // namespace

uint64_t state_bytes(std::span<const StateInfo> states) {
  uint64_t bytes = 0;  // 2^17 states of 2^34 bytes at most
  for (const StateInfo& state : states) {
    if (state.used) bytes += buffer_bytes(state.bytes);
  }
  return bytes;
}

uint64_t words_bytes(std::span<const std::unique_ptr<Graph>> graphs) {
  uint64_t counters = 0;
  for (const auto& graph : graphs) counters = std::max(counters, graph->impl().counters_begin(kNone));
  return counters == 0 ? 16 : kCountersBegin + counters;
}

uint64_t value_texture_bytes(Device& device, const Layout& layout) {
  uint64_t bytes = 0;
  for (const ImageShape& shape : layout.images) {
    if (device_takes(device.features(), shape)) bytes += device.memory().image_bytes(shape);
  }
  return bytes;
}

void add_session(Device& device, const Program& program, std::span<const std::unique_ptr<Graph>> graphs,
                 std::span<const Layout> layouts, MemoryNeed& need) {
  const std::vector<StateInfo> infos = states(program, graphs);
  need.states = state_bytes(infos);
  uint64_t upload = 0, download = 0;
  for (size_t m = 0; m < graphs.size(); ++m) {
    const Ports used = ports(*graphs[m], layouts[m], device.memory().unified());
    need.arena = std::max(need.arena, grown_bytes(layouts[m].plan.total));
    upload = std::max(upload, grown_bytes(used.upload_bytes));
    download = std::max(download, grown_bytes(used.download_bytes));
    need.textures += value_texture_bytes(device, layouts[m]);
  }
  need.io = buffer_bytes(words_bytes(graphs)) + StateUndo::bytes_of(infos, graphs) + upload + download;
}

void check_pipelines(std::span<const std::unique_ptr<Graph>> graphs) {
  PipelineCount count;
  for (const auto& graph : graphs) {
    count.add(*graph);
    for (const PackedConstant& packed : graph->impl().packed_constants)
      count.add(launch(*graph, packed.launch, packed.inputs.size() + 1));
  }
}

void check_pipelines(const Graph& graph) {
  PipelineCount count;
  count.add(graph);
}

}  // namespace pumice::engine
