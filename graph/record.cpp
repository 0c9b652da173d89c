// SPDX-License-Identifier: Apache-2.0
#include "graph/record.h"

#include <cinttypes>

#include "graph/bind.h"

namespace pumice::engine {
namespace {

// Where a tensor lies on the device.
class TensorMemory {
 public:
  TensorMemory(const Graph::Impl& graph, const Layout& layout, const SessionBuffers& buffers,
               std::span<const Image> images)
      : graph_(graph), layout_(layout), buffers_(buffers), images_(images) {}

  Allocation of(uint32_t tensor) const {
    const uint32_t owner = layout_.memory_root[tensor];
    const TensorInfo& root = graph_.tensors[owner];
    const uint64_t bytes = layout_.bytes[tensor];
    if (root.storage == StorageType::texture3d) return {{.view = images_[layout_.image[owner]].view()}};
    switch (root.memory) {
      case MemorySource::arena:
        return allocation(buffers_.arena, layout_.offset[tensor], bytes);
      case MemorySource::state:
        return allocation(buffers_.states[root.ref], 0, bytes);
      case MemorySource::status:
        return allocation(buffers_.status, 0, bytes);
      case MemorySource::constant:
        return cut(buffers_.weights.constant(root.ref, root.dtype), bytes);
      case MemorySource::packed:
        return cut(buffers_.weights.packed(graph_.packed_constants[root.ref].key), bytes);
    }
    return {};
  }

  Slice of(const Range& range) const {
    if (range.space == kUpload) return allocation(buffers_.upload, range.begin, range.end - range.begin).slice;
    if (range.space == kDownload) return allocation(buffers_.download, range.begin, range.end - range.begin).slice;
    return of(range.content).slice;  // copies read and write whole tensors
  }

  // A binding that no kernel reads: the operator left it empty.
  Slice empty() const { return allocation(buffers_.status, 0, 16).slice; }

  static Allocation allocation(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
    if (offset + bytes > buffer.bytes())
      fail(Code::Internal, Stage::encode, "", "bytes %" PRIu64 " to %" PRIu64 " of a buffer of %" PRIu64, offset,
           offset + bytes, buffer.bytes());
    return {{buffer.handle(), offset, bytes}, buffer.mapped() == nullptr ? nullptr : buffer.mapped() + offset};
  }

 private:
  static Allocation cut(const Allocation& whole, uint64_t bytes) {
    return {{whole.slice.buffer, whole.slice.offset, bytes, whole.slice.view}, whole.mapped};
  }

  const Graph::Impl& graph_;
  const Layout& layout_;
  const SessionBuffers& buffers_;
  const std::span<const Image> images_;
};

void set_data(const Graph::Impl& graph, const SessionBuffers& buffers, const TensorMemory& memory, Encoding& encoding) {
  for (Port& port : encoding.ports.inputs)
    port.data = buffers.in_place ? memory.of(port.tensor).mapped
                                 : TensorMemory::allocation(buffers.upload, port.offset, port.bytes).mapped;
  for (Port& port : encoding.ports.outputs)
    port.data = buffers.in_place ? memory.of(port.tensor).mapped
                                 : TensorMemory::allocation(buffers.download, port.offset, port.bytes).mapped;
  if (graph.status != kNone) {
    const Allocation status = buffers.in_place
                                  ? TensorMemory::allocation(buffers.status, 0, 16)
                                  : TensorMemory::allocation(buffers.download, encoding.ports.status_offset, 16);
    encoding.status = reinterpret_cast<const uint32_t*>(status.mapped);
  }
}

}  // namespace

void dispatch(Device& device, const Node& node, const ResolveBinding& resolve, Commands& commands) {
  std::vector<uint32_t> tensors = node.writes;
  tensors.insert(tensors.end(), node.reads.begin(), node.reads.end());
  for (const Dispatch& dispatch : node.dispatches) {
    // Ranges of an output may overlap (columns of the same rows). A dispatch here is as large as a binding, so that a
    // barrier costs little.
    if (&dispatch != &node.dispatches[0]) commands.barrier();
    std::vector<Slice> bindings;
    for (size_t b = 0; b < tensors.size(); ++b)
      bindings.push_back(
          resolve(tensors[b], b < dispatch.binding_ranges.size() ? dispatch.binding_ranges[b] : BindingRange{}));
    commands.dispatch(device.pipelines().get(pipeline_key(dispatch)), bindings, dispatch.push, dispatch.groups);
  }
}

void record(const std::shared_ptr<Device>& device, const Graph& graph, const Layout& layout,
            const SessionBuffers& buffers, const Deadline& deadline, Encoding& encoding) {
  const Graph::Impl& impl = graph.impl();
  for (const ImageShape& shape : layout.images) encoding.images.push_back(device->memory().image(shape, "values"));
  const TensorMemory memory(impl, layout, buffers, encoding.images);
  std::vector<PipelineKey> keys;
  for (const Step& step : encoding.steps) {
    if (step.kind != StepKind::dispatch) continue;
    for (const Dispatch& dispatch : impl.nodes[step.node].dispatches) keys.push_back(pipeline_key(dispatch));
  }
  device->pipelines().prepare(keys, deadline);
  set_data(impl, buffers, memory, encoding);

  const ResolveBinding resolve = [&](uint32_t tensor, const BindingRange& range) {
    return binding_range(tensor == kNone ? memory.empty() : memory.of(tensor).slice, range);
  };
  encoding.commands = std::make_unique<Commands>(device);
  Commands& commands = *encoding.commands;
  uint32_t times = 0;
  commands.begin(encoding.timed ? static_cast<uint32_t>(encoding.steps.size()) + 1 : 0, encoding.repeated);
  if (!encoding.repeated) {
    buffers.undo.save(impl.method_index, commands);
  } else if (buffers.undo.saves(impl.method_index)) {
    encoding.save = std::make_unique<Commands>(device);
    encoding.save->begin();
    buffers.undo.save(impl.method_index, *encoding.save);
    encoding.save->end();
  }
  commands.discard(encoding.images);
  for (const Step& step : encoding.steps) {
    if (step.barrier) commands.barrier();
    if (encoding.timed) commands.timestamp(times++);
    if (step.kind == StepKind::dispatch) {
      const Node& node = impl.nodes[step.node];
      with_path(impl, node.call, [&] { dispatch(*device, node, resolve, commands); });
    } else if (step.kind == StepKind::copy) {
      commands.copy(memory.of(step.reads[0]), memory.of(step.writes[0]));
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
