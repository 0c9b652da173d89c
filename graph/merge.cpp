// SPDX-License-Identifier: Apache-2.0
#include "graph/merge.h"

#include <algorithm>
#include <set>

#include "graph/cost.h"

namespace pumice::engine {
namespace {

std::vector<uint32_t> roots(const Graph::Impl& graph, const std::vector<uint32_t>& tensors) {
  std::vector<uint32_t> result;
  for (const uint32_t id : tensors) result.push_back(id == kNone ? kNone : graph.view_root(id));
  return result;
}

std::vector<RunningNode> running_nodes(const Graph::Impl& graph) {
  std::vector<RunningNode> result;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool copies = node.kind == NodeKind::copy && graph.bytes(node.writes[0]) > 0;
    if (!copies && node.dispatches.empty()) continue;
    result.push_back({.node = n,
                      .dispatch = node.dispatches.size() == 1 ? &node.dispatches[0] : nullptr,
                      .writes = roots(graph, node.writes),
                      .reads = roots(graph, node.reads)});
  }
  return result;
}

// Whether a tensor that only the merged nodes have is needed by anything else.
bool leaves_out(const Graph::Impl& graph, const std::set<uint32_t>& inside, const Merged& merged) {
  const auto needed = [&](uint32_t id) { return id != kNone && inside.contains(graph.view_root(id)); };
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const bool outside = n < merged.first || n > merged.last;
    if (outside && std::any_of(graph.nodes[n].reads.begin(), graph.nodes[n].reads.end(), needed)) return true;
  }
  const auto updates = [&](const Update& update) { return needed(update.value); };
  const std::vector<Update>& all = graph.method().updates;
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), needed) ||
         std::any_of(all.begin(), all.end(), updates);
}

bool keeps_states(const Graph::Impl& graph, const Merged& merged, const std::function<bool(uint32_t)>& keeps_state) {
  return std::all_of(graph.method().updates.begin(), graph.method().updates.end(), [&](const Update& update) {
    const std::vector<uint32_t> rows = roots(graph, merged.rows);
    if (!graph.is_state(update.state)) return true;  // an input is copied in again
    return keeps_state(graph.tensors[update.state].ref) ||
           std::find(rows.begin(), rows.end(), graph.view_root(update.value)) != rows.end();
  });
}

// Sets what it reads and writes, and what it costs. False where it must not be.
bool complete(const Graph::Impl& graph, Merged& merged, const std::function<bool(uint32_t)>& keeps_state) {
  std::set<uint32_t> inside, outside;
  const std::vector<uint32_t> results = roots(graph, merged.results);
  for (uint32_t n = merged.first; n <= merged.last; ++n) {
    const Node& node = graph.nodes[n];
    if (node.dispatches.empty()) continue;
    merged.dispatch.bytes += moved_bytes(graph, node);
    for (const Dispatch& dispatch : node.dispatches) merged.dispatch.flops += dispatch.flops;
    for (const uint32_t id : roots(graph, node.reads)) {
      if (id != kNone && !inside.contains(id)) outside.insert(id);
    }
    for (const uint32_t id : roots(graph, node.writes)) inside.insert(id);
  }
  for (const uint32_t id : results) {
    inside.erase(id);
    outside.erase(id);
  }
  merged.writes = results;
  merged.reads.assign(outside.begin(), outside.end());
  std::erase_if(inside, [&](uint32_t id) {
    const MemorySource memory = graph.tensors[id].memory;
    return memory == MemorySource::status || memory == MemorySource::counters;
  });
  return !leaves_out(graph, inside, merged) && keeps_states(graph, merged, keeps_state);
}

}  // namespace

std::vector<std::shared_ptr<const Merged>> find_merged(const Graph& graph, bool steps,
                                                       const std::function<bool(uint32_t state)>& keeps_state) {
  const Graph::Impl& impl = graph.impl();
  std::vector<std::shared_ptr<const Merged>> result;
  if (!impl.merge) return result;
  const std::vector<RunningNode> nodes = running_nodes(impl);
  for (Merged& merged : impl.merge(graph, nodes, steps)) {
    if (complete(impl, merged, keeps_state)) result.push_back(std::make_shared<Merged>(std::move(merged)));
  }
  return result;
}

}  // namespace pumice::engine
