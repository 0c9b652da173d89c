// SPDX-License-Identifier: Apache-2.0
#include "graph/schedule.h"

#include <algorithm>
#include <map>
#include <set>

namespace pumice::engine {
namespace {

constexpr uint32_t kEnd = kNone;  // the level of what happens after the last node

// A fresh tensor that holds what `from` holds at its place in the order.
uint32_t snapshot(Graph::Impl& graph, uint32_t from) {
  const TensorInfo& source = graph.tensors[from];
  const uint32_t copy = graph.add({.dtype = source.dtype, .rank = source.rank, .shape = source.shape});
  graph.nodes.push_back({.kind = NodeKind::copy, .writes = {copy}, .reads = {from}});
  return copy;
}

// Outputs and new values that are the old value of what changes, a state or an input, are copied before it changes.
void keep_old_values(Graph::Impl& graph, std::vector<Update>& updates) {
  std::map<uint32_t, uint32_t> copies;
  const auto keep = [&](uint32_t id) {
    const auto [at, fresh] = copies.try_emplace(id, 0);
    if (fresh) at->second = snapshot(graph, id);
    return at->second;
  };
  std::erase_if(updates, [&](const Update& u) { return graph.view_root(u.state) == graph.view_root(u.value); });
  std::set<uint32_t> changing;
  for (const Update& update : updates) changing.insert(graph.view_root(update.state));
  for (uint32_t& output : graph.outputs) {
    if (changing.contains(graph.view_root(output))) output = keep(output);
  }
  for (Update& update : updates) {
    const uint32_t root = graph.view_root(update.value);
    if (graph.is_state(root) || changing.contains(root)) update.value = keep(update.value);
  }
}

// When memory (by views) is written and used, by the nodes so far: enough for the level of the next node.
struct Seen {
  uint32_t write_level = 0, use_level = 0;
};

void set_levels(Graph::Impl& graph) {
  std::vector<Seen> seen(graph.tensors.size());
  for (Node& node : graph.nodes) {
    if (node.kind == NodeKind::view) {  // inferred after the node that writes its memory, before those that read it
      node.level = seen[graph.view_root(node.reads[0])].write_level;
      continue;
    }
    for (const uint32_t id : node.reads) {
      if (id != kNone) node.level = std::max(node.level, seen[graph.view_root(id)].write_level);
    }
    for (const uint32_t id : node.writes) {
      if (graph.tensors[id].memory != MemorySource::status)
        node.level = std::max(node.level, seen[graph.view_root(id)].use_level);
    }
    ++node.level;
    for (const uint32_t id : node.writes) {
      Seen& memory = seen[graph.view_root(id)];
      memory.write_level = memory.use_level = std::max(memory.use_level, node.level);
    }
    for (const uint32_t id : node.reads) {
      if (id == kNone) continue;
      Seen& memory = seen[graph.view_root(id)];
      memory.use_level = std::max(memory.use_level, node.level);
    }
  }
}

// The memory of each tensor and when it is used. It is joined step by step, as nodes are allowed to work in place.
class InPlace {
 public:
  InPlace(Graph::Impl& graph, const std::vector<Update>& updates) : graph_(graph), uses_(graph.tensors.size()) {
    for (uint32_t t = 0; t < graph.tensors.size(); ++t) root_.push_back(graph.view_root(t));
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.kind == NodeKind::view) continue;
      for (const uint32_t id : node.reads) use(id, n, node.level);
      for (const uint32_t id : node.writes) use(id, n, node.level);
    }
    for (const uint32_t id : graph.outputs) use(id, kEnd, kEnd);
    for (const Update& update : updates) {
      use(update.value, kEnd, kEnd);
      new_value_[graph.view_root(update.state)] = graph.view_root(update.value);
    }
  }

  // Pair `pair` of node n.
  void allow(uint32_t n, uint32_t pair) {
    const Node& node = graph_.nodes[n];
    const uint32_t in = node.reads[pair], out = node.writes[pair];
    if (in == kNone || root_[out] != out || !fits(in, out)) return;
    const uint32_t root = find(in);
    for (uint32_t i = 0; i < node.reads.size(); ++i) {
      if (i != pair && node.reads[i] != kNone && find(node.reads[i]) == root) return;
    }
    // This node must be the memory's last use, alone in its level, and the output's first.
    if (uses_[root].last != node.level || uses_[root].at_last != 1 || uses_[out].first < n) return;
    graph_.tensors[out].base = in;
    graph_.tensors[out].in_place = true;
    root_[out] = root;
    if (uses_[out].last == uses_[root].last) uses_[out].at_last += uses_[root].at_last;
    uses_[root] = {uses_[root].first, uses_[out].last, uses_[out].at_last};
  }

  // Whether the update happens without a copy.
  bool done(const Update& update) { return find(update.value) == graph_.view_root(update.state); }

 private:
  struct Uses {
    uint32_t first = kNone;          // node
    uint32_t last = 0, at_last = 0;  // level; how many uses it has there
  };

  void use(uint32_t id, uint32_t node, uint32_t level) {
    if (id == kNone) return;
    Uses& uses = uses_[root_[id]];
    uses.first = std::min(uses.first, node);
    if (level > uses.last) uses.at_last = 0;
    uses.last = std::max(uses.last, level);
    uses.at_last += level == uses.last;
  }
  uint32_t find(uint32_t id) const {
    while (root_[id] != id) id = root_[id];
    return id;
  }
  bool fits(uint32_t in, uint32_t out) const {
    const uint32_t id = find(in);
    const TensorInfo& root = graph_.tensors[id];
    if (root.storage != StorageType::buffer || graph_.tensors[out].storage != StorageType::buffer) return false;
    if (device_bytes(graph_.tensors[in].dtype) != device_bytes(graph_.tensors[out].dtype)) return false;
    // In place on a state, or on an input that changes: only for the node that makes its new value.
    if (const auto value = new_value_.find(id); value != new_value_.end()) return value->second == out;
    return root.memory == MemorySource::arena;
  }

  Graph::Impl& graph_;
  std::map<uint32_t, uint32_t> new_value_;  // of a state or an input: the tensor, by views
  std::vector<uint32_t> root_;
  std::vector<Uses> uses_;  // by root
};

}  // namespace

void schedule(Graph::Impl& graph) {
  // Two values may be the same state: they become one tensor's memory.
  std::map<uint32_t, uint32_t> states;
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].memory != MemorySource::state) continue;
    const uint32_t first = states.try_emplace(graph.tensors[t].ref, t).first->second;
    if (first != t) graph.tensors[t].base = first;
  }
  std::vector<Update> updates = graph.method().updates;
  keep_old_values(graph, updates);
  set_levels(graph);
  std::stable_sort(graph.nodes.begin(), graph.nodes.end(),
                   [](const Node& a, const Node& b) { return a.level < b.level; });

  InPlace in_place(graph, updates);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (uint32_t pair = 0; pair < graph.nodes[n].in_place; ++pair) in_place.allow(n, pair);
  }
  const uint32_t last = graph.nodes.empty() ? 0 : graph.nodes.back().level;
  for (const Update& update : updates) {
    if (!in_place.done(update))
      graph.nodes.push_back(
          {.kind = NodeKind::copy, .writes = {update.state}, .reads = {update.value}, .level = last + 1});
  }
}

}  // namespace pumice::engine
