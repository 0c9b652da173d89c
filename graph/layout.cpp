// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to intervals, and back from their plan to tensors.
#include <algorithm>

#include "graph/build.h"
#include "graph/plan.h"

namespace pumice {

Layout layout(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  const uint32_t count = static_cast<uint32_t>(impl.tensors.size());
  Layout result{
      .storage = std::vector<uint32_t>(count), .offset = std::vector<uint64_t>(count), .bytes = {}, .plan = {}};
  const uint32_t end = impl.nodes.empty() ? 1 : impl.nodes.back().level + 1;

  std::vector<uint32_t> first(count, kNone), last(count, 0);
  const auto use = [&](uint32_t id, uint32_t level) {
    if (id == kNone) return;
    const uint32_t storage = result.storage[id];
    first[storage] = std::min(first[storage], level);
    last[storage] = std::max(last[storage], level);
  };
  std::vector<bool> known(count, false);
  const auto storage = [&](uint32_t id) {  // chains of kernels in place may be long: each is walked once
    std::vector<uint32_t> chain;
    for (; !known[id]; id = impl.tensors[id].base) {
      chain.push_back(id);
      if (impl.tensors[id].base != kNone && (!impl.tensors[id].in_place || impl.granted(id))) continue;
      result.storage[id] = id;
      break;
    }
    const uint32_t root = result.storage[id];
    for (const uint32_t t : chain) {
      result.storage[t] = root;
      known[t] = true;
    }
  };
  for (uint32_t t = 0; t < count; ++t) {
    storage(t);
    result.bytes.push_back(std::max<uint64_t>(16, (impl.bytes(t) + 15) & ~uint64_t{15}));
  }
  for (const uint32_t input : impl.method().inputs) use(input, 0);
  for (const Node& node : impl.nodes) {
    if (node.kind == NodeKind::view) continue;
    for (const uint32_t id : node.reads) use(id, node.level);
    for (const uint32_t id : node.writes) use(id, node.level);
  }
  for (const uint32_t output : impl.outputs) use(output, end);

  std::vector<uint64_t> bytes(count, 0);
  for (uint32_t t = 0; t < count; ++t) bytes[result.storage[t]] = std::max(bytes[result.storage[t]], result.bytes[t]);
  std::vector<Interval> intervals;
  std::vector<uint32_t> of_interval;
  for (uint32_t t = 0; t < count; ++t) {
    if (first[t] == kNone || impl.tensors[t].home != Home::arena) continue;
    intervals.push_back({first[t], last[t], bytes[t], impl.features.storage_alignment});
    of_interval.push_back(t);
  }
  result.plan = plan(intervals);
  for (size_t i = 0; i < intervals.size(); ++i) result.offset[of_interval[i]] = result.plan.offsets[i];
  for (uint32_t t = 0; t < count; ++t) result.offset[t] = result.offset[result.storage[t]];
  return result;
}

}  // namespace pumice
