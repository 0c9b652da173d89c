// SPDX-License-Identifier: Apache-2.0
#include "graph/state_undo.h"

#include <algorithm>
#include <set>

#include "graph/suballocator.h"

namespace pumice::engine {
namespace {

std::set<uint32_t> updated_states(const Graph::Impl& graph) {
  std::set<uint32_t> result;
  for (const Update& update : graph.method().updates) {
    if (graph.is_state(update.state)) result.insert(graph.tensors[update.state].ref);
  }
  return result;
}

struct Places {
  std::vector<uint64_t> offset;  // of each state; kMostBytes: it is not saved
  uint64_t bytes = 0;
};

Places places(std::span<const StateInfo> infos, std::span<const std::unique_ptr<Graph>> graphs) {
  std::set<uint32_t> all;
  for (const auto& graph : graphs) all.merge(updated_states(graph->impl()));
  std::vector<uint32_t> smallest(all.begin(), all.end());
  std::stable_sort(smallest.begin(), smallest.end(),
                   [&](uint32_t a, uint32_t b) { return infos[a].bytes < infos[b].bytes; });
  Places result{std::vector<uint64_t>(infos.size(), StateUndo::kMostBytes)};
  for (const uint32_t state : smallest) {
    const uint64_t bytes = std::max<uint64_t>(padded(infos[state].bytes, 16), 16);
    if (bytes > StateUndo::kMostBytes - result.bytes) break;
    result.offset[state] = result.bytes;
    result.bytes += bytes;
  }
  return result;
}

}  // namespace

uint64_t StateUndo::bytes_of(std::span<const StateInfo> infos, std::span<const std::unique_ptr<Graph>> graphs) {
  return places(infos, graphs).bytes;
}

StateUndo::StateUndo(Device& device, const std::vector<Buffer>& states, std::span<const StateInfo> infos,
                     std::span<const std::unique_ptr<Graph>> graphs)
    : methods_(graphs.size()) {
  const auto [offset, bytes] = places(infos, graphs);
  if (bytes != 0) buffer_ = device.memory().buffer(bytes, MemoryKind::device, "states before a run");
  for (size_t m = 0; m < graphs.size(); ++m) {
    for (const uint32_t state : updated_states(graphs[m]->impl())) {
      if (offset[state] == kMostBytes) {
        methods_[m].complete = false;
        continue;
      }
      const uint64_t size = states[state].bytes();
      methods_[m].saved.push_back({{states[state].handle(), 0, size}, {buffer_.handle(), offset[state], size}});
    }
  }
}

bool StateUndo::saves(uint32_t method, const Buffer& state) const {
  const std::vector<Copy>& saved = methods_[method].saved;
  return std::any_of(saved.begin(), saved.end(), [&](const Copy& copy) { return copy.state.buffer == state.handle(); });
}

void StateUndo::save(uint32_t method, Commands& commands) const {
  for (const Copy& copy : methods_[method].saved) commands.copy(copy.state, copy.saved);
  if (saves(method)) commands.barrier();
}

void StateUndo::restore(uint32_t method, Commands& commands) const {
  for (const Copy& copy : methods_[method].saved) commands.copy(copy.saved, copy.state);
}

}  // namespace pumice::engine
