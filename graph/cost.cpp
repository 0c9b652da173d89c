// SPDX-License-Identifier: Apache-2.0
#include "graph/cost.h"

#include <algorithm>

namespace pumice::engine {

uint64_t moved_bytes(const Graph::Impl& graph, const Node& node) {
  uint64_t bytes = 0;
  for (const Dispatch& dispatch : node.dispatches) bytes += dispatch.bytes;
  if (bytes != 0) return bytes;
  std::vector<uint32_t> reads = node.reads;
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  for (const uint32_t id : reads) bytes += id == kNone ? 0 : graph.bytes(id);
  for (const uint32_t id : node.writes) bytes += graph.tensors[id].memory == MemorySource::status ? 0 : graph.bytes(id);
  return bytes;
}

void add_operations(const Node& node, Operations& operations) {
  for (const Dispatch& dispatch : node.dispatches)
    operations[static_cast<size_t>(dispatch.arithmetic)] += dispatch.flops;
}

// A discrete GPU has at least a third of this (GeForce GT 1030), an integrated one and that of a phone a fifth. Two
// cores of a server reach three times that of a CPU driver. The slowest GPUs with matrix units are made for 50 TFLOP/s
// (Intel Arc A310, discrete) and 16 (Radeon 780M, integrated): a third and a sixteenth of it.
Pace slow_pace(const DeviceInfo& info) {
  if (info.kind == "cpu") return {.bytes_per_ns = 1, .flops_per_ns = 4, .dispatch_ns = 5000, .matrix_flops_per_ns = 4};
  if (info.kind == "discrete")
    return {.bytes_per_ns = 100, .flops_per_ns = 2000, .dispatch_ns = 2000, .matrix_flops_per_ns = 16000};
  return {.bytes_per_ns = 5, .flops_per_ns = 50, .dispatch_ns = 5000, .matrix_flops_per_ns = 1000};
}

double estimate_ns(const Graph::Impl& graph, const Step& step, const Dispatch* dispatch, const Pace& pace) {
  double bytes = 0, operations = 0, rate = pace.flops_per_ns;
  if (dispatch == nullptr) {
    for (const Range& range : step.writes) bytes += 2.0 * static_cast<double>(range.end - range.begin);
  } else {
    const Node& node = graph.nodes[step.node];
    bytes = dispatch->bytes != 0
                ? static_cast<double>(dispatch->bytes)
                : static_cast<double>(moved_bytes(graph, node)) / static_cast<double>(node.dispatches.size());
    operations = static_cast<double>(std::max(dispatch->flops, dispatch->operations));
    if ((dispatch->shader->features & bit(Feature::coopmat)) != 0) rate = pace.matrix_flops_per_ns;
  }
  return pace.dispatch_ns + bytes / pace.bytes_per_ns + operations / rate;
}

}  // namespace pumice::engine
