// SPDX-License-Identifier: Apache-2.0
#include "graph/limits.h"

#include <algorithm>
#include <cinttypes>

#include "graph/image_shape.h"
#include "graph/infer.h"

namespace pumice::engine {
namespace {

std::string label(const Graph::Impl& graph, uint32_t id) {
  const TensorInfo& tensor = graph.tensors[id];
  const std::string type = format("%s[%s]", name(tensor.dtype), text(tensor.shape).c_str());
  const auto quoted = [&](const std::string& key) { return "'" + printable(key) + "' " + type; };
  if (tensor.storage == StorageType::texture3d) return label(graph, tensor.other_storage);
  const TensorInfo& root = graph.tensors[graph.view_root(id)];
  if (root.memory == MemorySource::constant) return "the constant " + quoted(graph.program->constants[root.ref].key);
  if (root.memory == MemorySource::state) return "the state " + quoted(graph.program->states[root.ref].key);
  if (root.memory == MemorySource::packed) {
    const PackedConstant& packed = graph.packed_constants[root.ref];
    return format("the packed form (%s) of %s", packed.what.c_str(), label(graph, packed.inputs[0]).c_str());
  }
  if (tensor.value == kNone) return "a temporary " + type;
  const std::string& given = graph.method().values[tensor.value].name;
  return given.empty() ? format("value %u, ", tensor.value) + type : "value " + quoted(given);
}

uint64_t bound(const Graph::Impl& graph, uint32_t id, const Dispatch& dispatch, size_t binding) {
  const BindingRange range =
      binding < dispatch.binding_ranges.size() ? dispatch.binding_ranges[binding] : BindingRange{};
  const uint64_t all = graph.bytes(id);
  return range.bytes != 0 ? range.bytes : all - std::min(range.begin, all);
}

void check_image(const Graph::Impl& graph, uint32_t id) {
  const ImageShape shape = image_shape(graph.tensors[id]);
  if (device_takes(graph.features, shape)) return;
  const bool flat = shape.depth == 0;
  const uint32_t limit = flat ? graph.features.max_image_2d : graph.features.max_image_3d;
  if (std::max({shape.width, shape.height, shape.depth}) > limit)
    fail(Code::DeviceUnsupported, Stage::plan, "",
         "%s is a %s of %u x %u x %u texels; this device has at most %u along an axis (%s)", label(graph, id).c_str(),
         name(graph.tensors[id].storage), shape.width, shape.height, shape.depth, limit,
         flat ? "maxImageDimension2D" : "maxImageDimension3D");
  fail(Code::DeviceUnsupported, Stage::plan, "", "%s is a %s, for which this device has no format; keep it in a buffer",
       label(graph, id).c_str(), name(graph.tensors[id].storage));
}

void check_dispatch(const Graph::Impl& graph, const std::vector<uint32_t>& bindings, const Dispatch& dispatch) {
  const uint64_t limit = graph.features.max_storage_bytes;
  for (size_t b = 0; b < bindings.size(); ++b) {
    if (bindings[b] == kNone) continue;
    if (graph.tensors[bindings[b]].storage != StorageType::buffer) {
      check_image(graph, bindings[b]);
      continue;
    }
    const uint64_t bytes = bound(graph, bindings[b], dispatch, b);
    if (bytes > limit)
      fail(Code::DeviceUnsupported, Stage::plan, "",
           "%s takes %" PRIu64 " bytes; one storage buffer of this device has at most %" PRIu64
           " (maxStorageBufferRange), and %s does not split it",
           label(graph, bindings[b]).c_str(), bytes, limit, dispatch.shader->name);
  }
}

void check_allocation(const Graph::Impl& graph, uint32_t id) {
  const uint64_t bytes = graph.bytes(graph.view_root(id)), limit = graph.features.max_allocation_bytes;
  if (bytes > limit)
    fail(Code::DeviceUnsupported, Stage::plan, "",
         "%s takes %" PRIu64 " bytes; this device allocates at most %" PRIu64
         " at once (maxMemoryAllocationSize, maxBufferSize)",
         label(graph, id).c_str(), bytes, limit);
}

template <class T>
std::vector<T> joined(std::vector<T> first, const std::vector<T>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

void check_weights(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  for (const PackedConstant& packed : impl.packed_constants) {
    with_path(impl, packed.call, [&] {
      check_allocation(impl, packed.result);
      const std::vector<uint32_t> bindings = joined({packed.result}, packed.inputs);
      for (const Dispatch& dispatch : launch(graph, packed.launch, bindings.size()))
        check_dispatch(impl, bindings, dispatch);
    });
  }
  for (const Node& node : impl.nodes) {
    std::vector<uint32_t> bindings = joined(node.writes, node.reads);
    for (uint32_t& id : bindings) {
      if (id == kNone || impl.tensors[impl.view_root(id)].memory == MemorySource::arena) id = kNone;
    }
    with_path(impl, node.call, [&] {
      for (const uint32_t id : bindings) {
        if (id != kNone) check_allocation(impl, id);
      }
      for (const Dispatch& dispatch : node.dispatches) check_dispatch(impl, bindings, dispatch);
    });
  }
}

void check_bindings(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  for (const Node& node : impl.nodes) {
    with_path(impl, node.call, [&] {
      const std::vector<uint32_t> bindings = joined(node.writes, node.reads);
      for (const Dispatch& dispatch : node.dispatches) check_dispatch(impl, bindings, dispatch);
    });
  }
}

}  // namespace pumice::engine
