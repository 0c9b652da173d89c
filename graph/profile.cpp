// SPDX-License-Identifier: Apache-2.0
#include "graph/profile.h"

#include <algorithm>

#include "graph/cost.h"
#include "graph/merge.h"

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
    if (graph.tensors[id].memory != MemorySource::status) result += " " + text(graph, id);
  }
  return result;
}

std::string operands(const Method& method, const OpCall& call) {
  std::string result;
  const auto add = [&](int64_t id) {
    const std::string& name = method.values[static_cast<size_t>(id)].name;
    result += (result.empty() ? "" : " ") + (name.empty() ? "#" + std::to_string(id) : name);
  };
  for (const Arg& arg : call.args) {
    if (arg.kind == ArgKind::value) add(arg.i);
    if (arg.kind == ArgKind::values) std::for_each(arg.list.begin(), arg.list.end(), add);
  }
  result += result.empty() ? "->" : " ->";
  std::for_each(call.outputs.begin(), call.outputs.end(), add);
  return result;
}

ProfileRow row(const Graph::Impl& graph, const Step& step, double begin, double end) {
  ProfileRow row{.op = "copy",
                 .source = "",
                 .kernel = "copy",
                 .shapes = "",
                 .operands = "",
                 .call = kNone,
                 .start_us = begin,
                 .us = end - begin,
                 .bytes = 0,
                 .operations = {},
                 .split = false};
  for (const Range& range : step.reads) row.bytes += range.end - range.begin;
  for (const Range& range : step.writes) row.bytes += range.end - range.begin;
  if (step.node == kNone) {
    row.op = step.reads[0].space == kUpload ? "copy in" : "copy out";
    return row;
  }
  const Node& node = graph.nodes[step.node];
  if (step.merged) {
    row.op = step.merged->name;
    row.kernel = step.merged->dispatch.shader->name;
    row.bytes = step.merged->dispatch.bytes;
    for (uint32_t n = step.merged->first; n <= step.merged->last; ++n) add_operations(graph.nodes[n], row.operations);
    return row;
  }
  row.shapes = shapes(graph, node);
  if (node.call != kNone) {
    const OpCall& call = graph.method().ops[node.call];
    row.op = graph.op_name(call.op);
    row.source = call.source;
    row.operands = operands(graph.method(), call);
    row.call = node.call;
  }
  if (node.kind == NodeKind::dispatch) {
    row.kernel = node.dispatches[0].shader->name;
    const Shader* last = node.dispatches.back().shader;
    if (last != nullptr && last != node.dispatches[0].shader) row.kernel += format(" + %s", last->name);
    if (node.dispatches[0].tuned) row.kernel += " (tuned)";
    row.split = std::ranges::any_of(node.dispatches, &Dispatch::split);
  }
  if (node.kind == NodeKind::dispatch) row.bytes = moved_bytes(graph, node);
  add_operations(node, row.operations);
  return row;
}

}  // namespace

std::vector<ProfileRow> profile_rows(const Graph& graph, const Encoding& timed) {
  const std::vector<double> times = timed.commands->timestamps_us();
  std::vector<ProfileRow> rows;
  for (size_t s = 0; s < timed.steps.size(); ++s) {
    if (timed.steps[s].kind != StepKind::host)
      rows.push_back(row(graph.impl(), timed.steps[s], times[s], times[s + 1]));
  }
  return rows;
}

}  // namespace pumice::engine
