// SPDX-License-Identifier: Apache-2.0
// A run with a timestamp between every two steps.
#include <algorithm>

#include "graph/execute.h"

namespace pumice::engine {
namespace {

std::string text(const Graph::Impl& graph, uint32_t tensor) {
  if (tensor == kNone) return "-";
  const TensorInfo& info = graph.tensors[tensor];
  std::string result = std::string(name(info.dtype)) + "[";
  for (size_t d = 0; d < info.shape.size(); ++d) result += (d > 0 ? "," : "") + std::to_string(info.shape[d]);
  return result + "]";
}

std::string shapes(const Graph::Impl& graph, const Node& node) {
  std::string result;
  for (const uint32_t id : node.reads) result += (result.empty() ? "" : " ") + text(graph, id);
  result += " ->";
  for (const uint32_t id : node.writes) {
    if (graph.tensors[id].home != Home::status) result += " " + text(graph, id);
  }
  return result;
}

// What a call reads and writes: as its parts say, else every tensor once, however often it is bound.
uint64_t moved(const Graph::Impl& graph, const Node& node) {
  uint64_t said = 0;
  for (const Dispatch& dispatch : node.dispatches) said += dispatch.bytes;
  if (said != 0) return said;
  std::vector<uint32_t> reads = node.reads;
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  for (const uint32_t id : reads) said += id == kNone ? 0 : graph.bytes(id);
  for (const uint32_t id : node.writes) said += graph.tensors[id].home == Home::status ? 0 : graph.bytes(id);
  return said;
}

ProfileRow row(const Graph::Impl& graph, const Step& step, double begin, double end) {
  ProfileRow row{.op = "copy",
                 .source = "",
                 .kernel = "copy",
                 .shapes = "",
                 .call = kNone,
                 .start_us = begin,
                 .us = end - begin,
                 .bytes = 0,
                 .flops = 0};
  for (const Range& range : step.reads) row.bytes += range.end - range.begin;
  for (const Range& range : step.writes) row.bytes += range.end - range.begin;
  if (step.node == kNone) {
    row.op = step.reads[0].space == kUpload ? "copy in" : "copy out";
    return row;
  }
  const Node& node = graph.nodes[step.node];
  row.shapes = shapes(graph, node);
  if (node.call != kNone) {
    const OpCall& call = graph.method().ops[node.call];
    row.op = graph.op_name(call.op);
    row.source = call.source;
    row.call = node.call;
  }
  if (node.kind == NodeKind::dispatch) {
    row.kernel = node.dispatches[0].shader->name;
    const Shader* last = node.dispatches.back().shader;
    if (last != nullptr && last != node.dispatches[0].shader) row.kernel += format(" + %s", last->name);
  }
  if (node.kind == NodeKind::dispatch) row.bytes = moved(graph, node);
  for (const Dispatch& dispatch : node.dispatches) row.flops += dispatch.flops;
  return row;
}

}  // namespace

std::vector<ProfileRow> Session::profile(uint32_t method_index, std::span<const InputView> inputs) {
  const Entry entry(*this);
  const Encoding& timed = execute(method_index, inputs, true);
  MethodState& method = methods_[method_index];
  num_launches_ += infer(*method.graph, method.symbols);  // it may have gone to other shapes since this was recorded
  const std::vector<double> times = timed.commands->timestamps_us();
  std::vector<ProfileRow> rows;
  for (size_t s = 0; s < timed.steps.size(); ++s) {
    if (timed.steps[s].kind != StepKind::host)
      rows.push_back(row(method.graph->impl(), timed.steps[s], times[s], times[s + 1]));
  }
  last_ = &timed;
  return rows;
}

}  // namespace pumice::engine
