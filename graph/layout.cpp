// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to intervals, and back from their plan to tensors.
#include <algorithm>

#include "graph/build.h"
#include "graph/image.h"
#include "graph/plan.h"

namespace pumice::engine {
namespace {

// In order of time, each texture in an image of its shape that is free again, or in a new one.
void place_images(const Graph::Impl& graph, const std::vector<uint32_t>& first, const std::vector<uint32_t>& last,
                  Layout& result) {
  std::vector<uint32_t> textures, busy;  // busy: until when, of each image
  for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].storage == StorageClass::texture3d && first[t] != kNone) textures.push_back(t);
  }
  std::stable_sort(textures.begin(), textures.end(), [&](uint32_t a, uint32_t b) { return first[a] < first[b]; });
  if (!textures.empty()) result.image.assign(graph.tensors.size(), kNone);
  for (const uint32_t t : textures) {
    const ImageShape shape = image_shape(graph.tensors[t]);
    uint32_t image = 0;
    while (image < busy.size() && !(result.images[image] == shape && busy[image] < first[t])) ++image;
    if (image == busy.size()) {
      result.images.push_back(shape);
      busy.push_back(0);
    }
    busy[image] = last[t];
    result.image[t] = image;
  }
}

}  // namespace

Layout layout(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  const uint32_t count = static_cast<uint32_t>(impl.tensors.size());
  Layout result;
  result.storage.resize(count);
  result.offset.resize(count);
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
    const bool buffer = impl.tensors[t].storage == StorageClass::buffer;
    if (first[t] == kNone || impl.tensors[t].home != Home::arena || !buffer) continue;
    intervals.push_back({first[t], last[t], bytes[t], impl.features.storage_alignment});
    of_interval.push_back(t);
  }
  result.plan = plan(intervals);
  for (size_t i = 0; i < intervals.size(); ++i) result.offset[of_interval[i]] = result.plan.offsets[i];
  for (uint32_t t = 0; t < count; ++t) result.offset[t] = result.offset[result.storage[t]];
  place_images(impl, first, last, result);
  return result;
}

}  // namespace pumice::engine
