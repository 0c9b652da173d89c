// SPDX-License-Identifier: Apache-2.0
#include "graph/encode.h"

#include <algorithm>
#include <map>
#include <utility>

namespace pumice::engine {
namespace {

Range range(const Graph::Impl& graph, const Layout& layout, uint32_t tensor) {
  const TensorInfo& root = graph.tensors[layout.memory_root[tensor]];
  // An empty tensor is neither written nor read. But the first elements of another one, be they none, are bound there.
  const uint64_t bytes = graph.bytes(layout.memory_root[tensor]) == 0 ? 0 : layout.bytes[tensor];
  const uint32_t content = graph.view_root(tensor);
  if (root.storage == StorageType::texture3d)
    return {kFirstImage + layout.image[layout.memory_root[tensor]], 0, bytes, content};
  switch (root.memory) {
    case MemorySource::arena:
      return {kArena, layout.offset[tensor], layout.offset[tensor] + bytes, content};
    case MemorySource::state:
      return {kFirstState + root.ref, 0, bytes, content};
    case MemorySource::status:
      return {kStatus, 0, bytes, content};
    case MemorySource::counters:
      return {kCounters, graph.counters_begin(tensor), graph.counters_begin(tensor) + bytes, content};
    case MemorySource::constant:
    case MemorySource::packed:
      break;
  }
  return {kFixed, 0, bytes, layout.memory_root[tensor]};
}

// A merged step is alone on the device: all its workgroups must run at once.
void set_barriers(std::vector<Step>& steps) {
  place_barriers(steps);
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].merged) steps[s].barrier = true;
    if (s > 0 && steps[s - 1].merged) steps[s].barrier = true;
  }
}

bool overlap(const Range& a, const Range& b) {
  return a.space == b.space && a.begin < b.end && b.begin < a.end;
}

Range staged(Space space, const Port& port) {
  return {space, port.offset, port.offset + ((port.bytes + 15) & ~uint64_t{15}), port.tensor};
}

}  // namespace

std::span<const Dispatch> dispatches(const Graph::Impl& graph, const Step& step) {
  if (step.merged) return {&step.merged->dispatch, 1};
  return graph.nodes[step.node].dispatches;
}

std::vector<Step> steps(const Graph& graph, const Layout& layout, const Ports& ports, bool in_place, bool separate,
                        std::span<const std::shared_ptr<const Merged>> merged) {
  const Graph::Impl& impl = graph.impl();
  std::map<uint32_t, Range> bound;  // by what has the memory
  for (const auto& [space, side] : {std::pair{kUpload, &ports.inputs}, std::pair{kDownload, &ports.outputs}})
    for (const Port& port : *side)
      if (port.bound != kNone) bound[port.bound] = staged(space, port);
  const auto at = [&](uint32_t tensor) {
    const auto found = bound.find(layout.memory_root[tensor]);
    return found == bound.end() ? range(impl, layout, tensor) : found->second;
  };
  std::vector<Step> steps;
  for (const Port& input : ports.inputs) {
    if (in_place) {
      steps.push_back({.kind = StepKind::host, .writes = {at(input.tensor)}});
    } else {
      steps.push_back({.kind = StepKind::host, .writes = {staged(kUpload, input)}});
      if (input.bytes > 0 && input.bound == kNone)
        steps.push_back({.kind = StepKind::copy, .writes = {at(input.tensor)}, .reads = {staged(kUpload, input)}});
    }
  }
  for (uint32_t n = 0; n < impl.nodes.size(); ++n) {
    const Node& node = impl.nodes[n];
    if (!merged.empty() && merged.front()->first == n) {
      Step step{.kind = StepKind::dispatch, .node = n, .merged = merged.front()};
      for (const uint32_t id : step.merged->writes) step.writes.push_back(at(id));
      for (const uint32_t id : step.merged->reads) step.reads.push_back(at(id));
      n = step.merged->last;
      merged = merged.subspan(1);
      steps.push_back(std::move(step));
      continue;
    }
    const bool copies = node.kind == NodeKind::copy && impl.bytes(node.writes[0]) > 0;
    if (!copies && node.dispatches.empty()) continue;
    Step step{.kind = copies ? StepKind::copy : StepKind::dispatch, .node = n};
    for (const uint32_t id : node.writes) step.writes.push_back(at(id));
    for (const uint32_t id : node.reads) {
      if (id != kNone) step.reads.push_back(at(id));
    }
    steps.push_back(std::move(step));
  }
  if (!in_place) {
    for (const Port& output : ports.outputs) {
      if (output.bytes == 0 || output.bound != kNone) continue;
      Step step{.kind = StepKind::copy, .writes = {staged(kDownload, output)}, .reads = {at(output.tensor)}};
      step.writes[0].content = step.reads[0].content;
      steps.push_back(std::move(step));
    }
    if (impl.status != kNone)
      steps.push_back({.kind = StepKind::copy,
                       .writes = {{kDownload, ports.status_offset, ports.status_offset + 16, impl.status}},
                       .reads = {at(impl.status)}});
  }
  set_barriers(steps);
  if (separate) {
    for (Step& step : steps) step.barrier = step.kind != StepKind::host;
  }
  return steps;
}

std::vector<uint32_t> updated_inputs(const Graph::Impl& graph) {
  std::vector<uint32_t> result;
  for (const Update& update : graph.method().updates) {
    if (!graph.is_state(update.state)) result.push_back(update.state);
  }
  return result;
}

void once(std::span<const uint32_t> updated, std::vector<Step>& before, std::vector<Step>& steps,
          std::vector<Step>& after) {
  const auto is_in = [&](const Step& step) {
    if (step.kind == StepKind::host) return true;
    if (step.kind != StepKind::copy || step.reads[0].space != kUpload) return false;
    if (std::find(updated.begin(), updated.end(), step.reads[0].content) != updated.end()) return true;
    return std::none_of(steps.begin(), steps.end(), [&](const Step& other) {
      const auto overwrites = [&](const Range& write) { return overlap(write, step.writes[0]); };
      return &other != &step && std::any_of(other.writes.begin(), other.writes.end(), overwrites);
    });
  };
  const auto is_out = [](const Step& step) { return step.kind == StepKind::copy && step.writes[0].space == kDownload; };
  std::vector<Step> each;
  for (const Step& step : steps) (is_in(step) ? before : is_out(step) ? after : each).push_back(step);
  steps = std::move(each);
  set_barriers(steps);
}

}  // namespace pumice::engine
