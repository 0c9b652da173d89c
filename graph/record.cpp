// SPDX-License-Identifier: Apache-2.0
// The last part of encode: steps into a command buffer.
#include <cinttypes>

#include "graph/encode.h"

namespace pumice::engine {
namespace {

// Where a tensor lies on the device.
class Places {
 public:
  Places(const Graph::Impl& graph, const Layout& layout, const Storages& storages, std::span<const Image> images)
      : graph_(graph), layout_(layout), storages_(storages), images_(images) {}

  Part of(uint32_t tensor) const {
    const uint32_t storage = layout_.storage[tensor];
    const TensorInfo& root = graph_.tensors[storage];
    const uint64_t bytes = layout_.bytes[tensor];
    if (root.storage == StorageClass::texture3d) return {{.view = images_[layout_.image[storage]].view()}};
    switch (root.home) {
      case Home::arena:
        return part(storages_.arena, layout_.offset[tensor], bytes);
      case Home::state:
        return part(storages_.states[root.ref], 0, bytes);
      case Home::status:
        return part(storages_.status, 0, bytes);
      case Home::constant:
        return first(storages_.weights.constant(root.ref, root.dtype), bytes);
      case Home::packed:
        return first(storages_.weights.packed(graph_.packs[root.ref].key), bytes);
    }
    return {};
  }

  Slice of(const Range& range) const {
    if (range.space == kUpload) return part(storages_.upload, range.begin, range.end - range.begin).slice;
    if (range.space == kDownload) return part(storages_.download, range.begin, range.end - range.begin).slice;
    return of(range.content).slice;  // copies read and write whole tensors
  }

  // A binding that no kernel reads: the operator left it empty.
  Slice empty() const { return part(storages_.status, 0, 16).slice; }

  static Part part(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
    if (offset + bytes > buffer.bytes())
      fail(Code::Internal, Stage::encode, "", "bytes %" PRIu64 " to %" PRIu64 " of a buffer of %" PRIu64, offset,
           offset + bytes, buffer.bytes());
    return {{buffer.handle(), offset, bytes}, buffer.mapped() == nullptr ? nullptr : buffer.mapped() + offset};
  }

 private:
  static Part first(const Part& part, uint64_t bytes) {
    return {{part.slice.buffer, part.slice.offset, bytes, part.slice.view}, part.mapped};
  }

  const Graph::Impl& graph_;
  const Layout& layout_;
  const Storages& storages_;
  const std::span<const Image> images_;
};

void set_data(const Graph::Impl& graph, const Storages& storages, const Places& places, Encoding& encoding) {
  for (Port& port : encoding.ports.inputs)
    port.data = storages.in_place ? places.of(port.tensor).mapped
                                  : Places::part(storages.upload, port.offset, port.bytes).mapped;
  for (Port& port : encoding.ports.outputs)
    port.data = storages.in_place ? places.of(port.tensor).mapped
                                  : Places::part(storages.download, port.offset, port.bytes).mapped;
  if (graph.status != kNone) {
    const Part status = storages.in_place ? Places::part(storages.status, 0, 16)
                                          : Places::part(storages.download, encoding.ports.status_offset, 16);
    encoding.status = reinterpret_cast<const uint32_t*>(status.mapped);
  }
}

}  // namespace

void dispatch(Device& device, const Node& node, const Bind& bind, Commands& commands) {
  std::vector<uint32_t> tensors = node.writes;
  tensors.insert(tensors.end(), node.reads.begin(), node.reads.end());
  for (const Dispatch& dispatch : node.dispatches) {
    // Windows of an output may overlap (columns of the same rows). Parts are as large as a binding: waiting is cheap.
    if (&dispatch != &node.dispatches[0]) commands.barrier();
    std::vector<Slice> bindings;
    for (size_t b = 0; b < tensors.size(); ++b)
      bindings.push_back(
          bind(tensors[b], b < dispatch.binding_ranges.size() ? dispatch.binding_ranges[b] : BindingRange{}));
    commands.dispatch(device.pipelines().get(pipeline_key(dispatch)), bindings, dispatch.push, dispatch.groups);
  }
}

void record(const std::shared_ptr<Device>& device, const Graph& graph, const Layout& layout, const Storages& storages,
            Encoding& encoding) {
  const Graph::Impl& impl = graph.impl();
  for (const ImageShape& shape : layout.images) encoding.images.push_back(device->memory().image(shape, "values"));
  const Places places(impl, layout, storages, encoding.images);
  std::vector<PipelineKey> keys;
  for (const Step& step : encoding.steps) {
    if (step.kind != StepKind::dispatch) continue;
    for (const Dispatch& dispatch : impl.nodes[step.node].dispatches) keys.push_back(pipeline_key(dispatch));
  }
  device->pipelines().prepare(keys);
  set_data(impl, storages, places, encoding);

  const Bind bind = [&](uint32_t tensor, const BindingRange& part) {
    return binding_range(tensor == kNone ? places.empty() : places.of(tensor).slice, part);
  };
  encoding.commands = std::make_unique<Commands>(device);
  Commands& commands = *encoding.commands;
  uint32_t times = 0;
  commands.begin(encoding.timed ? static_cast<uint32_t>(encoding.steps.size()) + 1 : 0);
  commands.discard(encoding.images);
  for (const Step& step : encoding.steps) {
    if (step.barrier) commands.barrier();
    if (encoding.timed) commands.timestamp(times++);
    if (step.kind == StepKind::dispatch) {
      const Node& node = impl.nodes[step.node];
      with_path(impl, node.call, [&] { dispatch(*device, node, bind, commands); });
    } else if (step.kind == StepKind::copy) {
      commands.copy(places.of(step.reads[0]), places.of(step.writes[0]));
    }
  }
  if (encoding.timed) {
    commands.barrier();
    commands.timestamp(times);
  }
  commands.host_barrier();
  commands.end();
}

}  // namespace pumice::engine
