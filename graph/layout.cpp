// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to intervals, and back from their plan to tensors.
#include "graph/layout.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "graph/image_shape.h"

namespace pumice::engine {
namespace {

// The images of one shape: the last level that uses each, and its index. The one that is free first is on top.
using Images = std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>,
                                   std::greater<std::pair<uint32_t, uint32_t>>>;

// In order of time, each texture in an image of its shape that is free again, or in a new one.
void place_images(const Graph::Impl& graph, const std::vector<uint32_t>& first, const std::vector<uint32_t>& last,
                  Layout& result) {
  std::vector<uint32_t> textures;
  std::map<std::tuple<ImageFormat, uint32_t, uint32_t, uint32_t>, Images> by_shape;
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].storage == StorageType::texture3d && first[t] != kNone) textures.push_back(t);
  }
  std::stable_sort(textures.begin(), textures.end(), [&](uint32_t a, uint32_t b) { return first[a] < first[b]; });
  if (!textures.empty()) result.image.assign(graph.tensors.size(), kNone);
  for (const uint32_t t : textures) {
    const ImageShape shape = image_shape(graph.tensors[t]);
    Images& images = by_shape[{shape.format, shape.width, shape.height, shape.depth}];
    if (images.empty() || images.top().first >= first[t]) {
      result.image[t] = static_cast<uint32_t>(result.images.size());
      result.images.push_back(shape);
    } else {
      result.image[t] = images.top().second;
      images.pop();
    }
    images.emplace(last[t], result.image[t]);
  }
}

}  // namespace

Layout layout(const Graph& graph, bool keeps_inputs) {
  const Graph::Impl& impl = graph.impl();
  const uint32_t count = static_cast<uint32_t>(impl.tensors.size());
  Layout result;
  result.memory_root.resize(count);
  result.offset.resize(count);
  const uint32_t end = impl.nodes.empty() ? 1 : impl.nodes.back().level + 1;

  std::vector<uint32_t> first(count, kNone), last(count, 0);
  const auto use = [&](uint32_t id, uint32_t level) {
    if (id == kNone) return;
    const uint32_t root = result.memory_root[id];
    first[root] = std::min(first[root], level);
    last[root] = std::max(last[root], level);
  };
  std::vector<bool> known(count, false);
  const auto find_root = [&](uint32_t id) {  // chains of nodes in place may be long: each is followed once
    std::vector<uint32_t> chain;
    for (; !known[id]; id = impl.tensors[id].base) {
      chain.push_back(id);
      if (impl.tensors[id].base != kNone && (!impl.tensors[id].in_place || impl.is_in_place(id))) continue;
      result.memory_root[id] = id;
      break;
    }
    const uint32_t root = result.memory_root[id];
    for (const uint32_t t : chain) {
      result.memory_root[t] = root;
      known[t] = true;
    }
  };
  for (uint32_t t = 0; t < count; ++t) {
    find_root(t);
    result.bytes.push_back(std::max<uint64_t>(16, (impl.bytes(t) + 15) & ~uint64_t{15}));
  }
  for (const uint32_t input : impl.method().inputs) {
    use(input, 0);
    if (keeps_inputs) use(input, end);
  }
  for (const Node& node : impl.nodes) {
    if (node.kind == NodeKind::view) continue;
    for (const uint32_t id : node.reads) use(id, node.level);
    for (const uint32_t id : node.writes) use(id, node.level);
  }
  for (const uint32_t output : impl.outputs) use(output, end);

  std::vector<uint64_t> bytes(count, 0);
  for (uint32_t t = 0; t < count; ++t)
    bytes[result.memory_root[t]] = std::max(bytes[result.memory_root[t]], result.bytes[t]);
  std::vector<Interval> intervals;
  std::vector<uint32_t> of_interval;
  for (uint32_t t = 0; t < count; ++t) {
    const bool buffer = impl.tensors[t].storage == StorageType::buffer;
    if (first[t] == kNone || impl.tensors[t].memory != MemorySource::arena || !buffer) continue;
    // An empty value is bound, too, but no barrier waits for the kernel, which does not read it: nothing else has its
    // place. Not of temporaries, of which many are empty.
    const bool empty = impl.bytes(t) == 0 && impl.tensors[t].value != kNone;
    intervals.push_back({empty ? 0 : first[t], empty ? end : last[t], bytes[t], impl.features.storage_alignment});
    of_interval.push_back(t);
  }
  result.plan = plan(intervals);
  for (size_t i = 0; i < intervals.size(); ++i) result.offset[of_interval[i]] = result.plan.offsets[i];
  for (uint32_t t = 0; t < count; ++t) result.offset[t] = result.offset[result.memory_root[t]];
  place_images(impl, first, last, result);
  return result;
}

}  // namespace pumice::engine
