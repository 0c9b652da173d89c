// SPDX-License-Identifier: Apache-2.0
#include "graph/record.h"

#include <cinttypes>
#include <map>

#include "base/divide.h"
#include "graph/bind.h"
#include "graph/need.h"
#include "vulkan/upload.h"

namespace pumice::engine {
namespace {

// Where a tensor lies on the device.
class TensorMemory {
 public:
  TensorMemory(const Graph::Impl& graph, const Layout& layout, const SessionBuffers& buffers,
               std::span<const Image> images, const Ports& ports)
      : graph_(graph), layout_(layout), buffers_(buffers), images_(images) {
    for (const Port& port : ports.inputs)
      if (port.bound != kNone) bound_[port.bound] = allocation(buffers.upload, port.offset, layout.bytes[port.bound]);
    for (const Port& port : ports.outputs)
      if (port.bound != kNone) bound_[port.bound] = allocation(buffers.download, port.offset, layout.bytes[port.bound]);
  }

  Allocation of(uint32_t tensor) const {
    const uint32_t owner = layout_.memory_root[tensor];
    const TensorInfo& root = graph_.tensors[owner];
    const uint64_t bytes = layout_.bytes[tensor];
    if (const auto found = bound_.find(owner); found != bound_.end()) return cut(found->second, bytes);
    if (root.storage == StorageType::texture3d) return {{.view = images_[layout_.image[owner]].view()}};
    switch (root.memory) {
      case MemorySource::arena:
        return allocation(buffers_.arena, layout_.offset[tensor], bytes);
      case MemorySource::state:
        return allocation(buffers_.states[root.ref], 0, bytes);
      case MemorySource::status:
        return allocation(buffers_.words, 0, bytes);
      case MemorySource::counters:
        return allocation(buffers_.words, kCountersBegin + graph_.counters_begin(owner), bytes);
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
  Slice empty() const { return allocation(buffers_.words, 0, 16).slice; }

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
  std::map<uint32_t, Allocation> bound_;  // Port::bound
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
                                  ? TensorMemory::allocation(buffers.words, 0, 16)
                                  : TensorMemory::allocation(buffers.download, encoding.ports.status_offset, 16);
    encoding.status = reinterpret_cast<const uint32_t*>(status.mapped);
  }
}

}  // namespace

void dispatch(Device& device, const Node& node, const Piece& piece, const ResolveBinding& resolve, Commands& commands) {
  const Dispatch& dispatch = node.dispatches[piece.dispatch];
  std::vector<uint32_t> tensors = node.writes;
  tensors.insert(tensors.end(), node.reads.begin(), node.reads.end());
  std::vector<Slice> bindings;
  for (size_t b = 0; b < tensors.size(); ++b)
    bindings.push_back(
        resolve(tensors[b], b < dispatch.binding_ranges.size() ? dispatch.binding_ranges[b] : BindingRange{}));
  std::array<uint32_t, 3> groups = piece.groups;
  if (device.features().lie == family_of(*dispatch.shader) && --groups[0] == 0) return;
  commands.dispatch(device.pipelines().get(pipeline_key(dispatch, piece.is_cut)), bindings,
                    push_constants(device.memory(), dispatch, bindings), groups, piece.first);
}

namespace {

constexpr uint64_t kSection = 256;  // table and scratch of a merged dispatch begin at multiples

uint64_t section(uint64_t bytes) {
  return padded(bytes, kSection);
}

// Calls take(binding, where in the buffer of the merged dispatch it is) for all that lies there: the table first.
template <class Take>
void for_own(const Merged& merged, const Take& take) {
  using Kind = MergedBinding::Kind;
  const uint64_t table = merged.table.size() * sizeof(uint64_t);
  uint64_t at = section(table);
  for (size_t b = 0; b < merged.bindings.size(); ++b) {
    const MergedBinding& binding = merged.bindings[b];
    if (binding.kind == Kind::table) take(b, 0, table);
    if (binding.kind != Kind::scratch && binding.kind != Kind::steps) continue;
    take(b, at, binding.bytes);
    at += section(binding.bytes);
  }
}

std::vector<Slice> merged_bindings(const Merged& merged, const Buffer& own, const TensorMemory& memory) {
  std::vector<Slice> bindings(merged.bindings.size());
  for (size_t b = 0; b < bindings.size(); ++b) {
    if (merged.bindings[b].kind == MergedBinding::Kind::tensor)
      bindings[b] = memory.of(merged.bindings[b].tensor).slice;
  }
  for_own(merged,
          [&](size_t b, uint64_t at, uint64_t bytes) { bindings[b] = TensorMemory::allocation(own, at, bytes).slice; });
  return bindings;
}

// Where the kernel of the merged dispatch counts steps.
Slice steps_of(const Merged& merged, const Buffer& own) {
  Slice slice{};
  for_own(merged, [&](size_t b, uint64_t at, uint64_t bytes) {
    if (merged.bindings[b].kind == MergedBinding::Kind::steps) slice = {own.handle(), at, bytes};
  });
  return slice;
}

uint64_t bytes_of(const Merged& merged) {
  uint64_t end = 0;
  for_own(merged, [&](size_t, uint64_t at, uint64_t bytes) { end = std::max(end, at + section(bytes)); });
  return end;
}

Buffer merged_memory(const std::shared_ptr<Device>& device, const Merged& merged, const TensorMemory& memory) {
  std::vector<uint64_t> table;
  for (const TableEntry& entry : merged.table)
    table.push_back(entry.tensor == kNone ? entry.number : device->memory().address(memory.of(entry.tensor).slice));
  Buffer own = device->memory().buffer(bytes_of(merged), MemoryKind::device, "what merged kernels hand over");
  Commands clear(device);
  clear.begin();
  clear.fill({own.handle(), 0, own.bytes()}, 0);
  clear.end();
  device->run(clear);
  Uploader uploader(device, section(table.size() * sizeof(uint64_t)), 1);
  uploader.put(std::as_bytes(std::span(table)), {own.handle(), 0, table.size() * sizeof(uint64_t)});
  uploader.flush();
  return own;
}

std::vector<PipelineKey> pipelines_of(const Graph::Impl& graph, const Encoding& encoding) {
  std::vector<PipelineKey> keys;
  for (const Part& part : encoding.parts) {
    for (const Piece& piece : part.pieces) {
      const Step& step = encoding.steps[piece.step];
      if (step.kind == StepKind::dispatch)
        keys.push_back(pipeline_key(dispatches(graph, step)[piece.dispatch], piece.is_cut));
    }
  }
  return keys;
}

// Records the pieces in their order: barriers and timestamps come before the first one of a step.
class Recorder {
 public:
  Recorder(Device& device, const Graph::Impl& graph, const TensorMemory& memory, const Encoding& encoding)
      : device_(device), graph_(graph), memory_(memory), encoding_(encoding), commands_(*encoding.commands) {}

  void record() {
    for (const Part& part : encoding_.parts) {
      if (&part != &encoding_.parts[0]) commands_.cut();
      for (const Piece& piece : part.pieces) record(piece);
    }
    begin_steps(static_cast<uint32_t>(encoding_.steps.size()));
    if (!encoding_.timed) return;
    commands_.barrier();
    commands_.timestamp(next_step_);
  }

 private:
  void begin_steps(uint32_t end) {
    for (; next_step_ < end; ++next_step_) {
      if (encoding_.steps[next_step_].barrier) commands_.barrier();
      if (encoding_.timed) commands_.timestamp(next_step_);
    }
  }

  void record(const Piece& piece) {
    const Step& step = encoding_.steps[piece.step];
    begin_steps(piece.step + 1);
    if (step.merged) return with_path(graph_, graph_.nodes[step.node].call, [&] { record_merged(*step.merged); });
    if (step.kind == StepKind::copy) return commands_.copy(memory_.of(step.reads[0]), memory_.of(step.writes[0]));
    // Ranges of an output may overlap (columns of the same rows), and the validation layer takes the pieces of a
    // dispatch for writes of the same bytes. A piece is as large as a binding or a submit: a barrier costs little.
    if (piece.dispatch > 0 || piece.first != std::array<uint32_t, 3>{0, 0, 0}) commands_.barrier();
    const Node& node = graph_.nodes[step.node];
    const ResolveBinding resolve = [&](uint32_t tensor, const BindingRange& range) {
      return binding_range(tensor == kNone ? memory_.empty() : memory_.of(tensor).slice, range);
    };
    with_path(graph_, node.call, [&] { dispatch(device_, node, piece, resolve, commands_); });
  }

  void record_merged(const Merged& merged) {
    const std::vector<Slice> bindings = merged_bindings(merged, encoding_.merged_memory[next_merged_++], memory_);
    commands_.dispatch(device_.pipelines().get(pipeline_key(merged.dispatch)), bindings, merged.dispatch.push,
                       merged.dispatch.groups);
  }

  Device& device_;
  const Graph::Impl& graph_;
  const TensorMemory& memory_;
  const Encoding& encoding_;
  Commands& commands_;
  uint32_t next_step_ = 0, next_merged_ = 0;
};

void copy(const TensorMemory& memory, std::span<const Step> steps, Commands& commands) {
  for (const Step& step : steps) {
    if (step.kind == StepKind::copy) commands.copy(memory.of(step.reads[0]), memory.of(step.writes[0]));
  }
}

// The dispatch that runs all steps of a call, or null.
const Merged* runs_steps(const Encoding& encoding) {
  const bool runs = encoding.steps.size() == 1 && encoding.steps[0].merged && encoding.steps[0].merged->runs_steps;
  return runs ? encoding.steps[0].merged.get() : nullptr;
}

}  // namespace

uint64_t merged_bytes(std::span<const std::shared_ptr<const Merged>> all) {
  uint64_t bytes = 0;
  for (const auto& merged : all) bytes += buffer_bytes(bytes_of(*merged));
  return bytes;
}

std::vector<Step> in_order(const Encoding& encoding) {
  std::vector<Step> all = encoding.before;
  for (const std::vector<Step>* steps : {&encoding.steps, &encoding.after}) {
    const size_t begin = all.size();
    all.insert(all.end(), steps->begin(), steps->end());
    if (encoding.repeated && begin < all.size()) all[begin].barrier = true;  // Commands::begin
  }
  return all;
}

uint32_t set_steps(const Encoding& encoding, uint32_t steps, uint32_t a_submit) {
  if (encoding.step_words == nullptr) return 1;
  const auto times = ceil_div(steps, a_submit);
  const auto at_once = static_cast<uint32_t>(ceil_div(steps, times));  // about as many in the last one
  encoding.step_words[0] = steps;
  encoding.step_words[1] = at_once;
  return at_once;
}

bool run_at_once(const std::shared_ptr<Device>& device, const Merged& merged) {
  const Pipeline& pipeline = device->pipelines().get(pipeline_key(merged.dispatch));
  uint64_t bytes = kSection;
  for (const MergedBinding& binding : merged.bindings) bytes = std::max(bytes, section(binding.bytes));
  const Buffer own = device->memory().buffer(bytes * (merged.bindings.size() + 1), MemoryKind::device, "probe");
  const Buffer seen = device->memory().buffer(16, MemoryKind::download, "probe");
  std::vector<Slice> bindings;
  for (size_t b = 0; b < merged.bindings.size(); ++b) bindings.push_back({own.handle(), b * bytes, bytes});
  Commands commands(device);
  commands.begin();
  commands.fill({own.handle(), 0, own.bytes()}, 0);
  commands.barrier();
  commands.dispatch(pipeline, bindings, merged.probe, merged.dispatch.groups);
  commands.barrier();
  commands.copy({own.handle(), merged.status * bytes, 16}, {seen.handle(), 0, 16});
  commands.host_barrier();
  commands.end();
  device->run(commands);
  return *reinterpret_cast<const uint32_t*>(seen.mapped()) == 0;
}

void record(const std::shared_ptr<Device>& device, const Graph& graph, const Layout& layout,
            const SessionBuffers& buffers, const Deadline& deadline, Encoding& encoding) {
  const Graph::Impl& impl = graph.impl();
  for (const ImageShape& shape : layout.images) encoding.images.push_back(device->memory().image(shape, "values"));
  const TensorMemory memory(impl, layout, buffers, encoding.images, encoding.ports);
  encoding.parts =
      parts(impl, encoding.steps, slow_pace(device->info()), submit_ns(device->features()), encoding.factors);
  device->pipelines().prepare(pipelines_of(impl, encoding), deadline);
  set_data(impl, buffers, memory, encoding);
  for (const Step& step : encoding.steps) {
    if (step.merged) encoding.merged_memory.push_back(merged_memory(device, *step.merged, memory));
  }

  encoding.commands = std::make_unique<Commands>(device);
  Commands& commands = *encoding.commands;
  commands.begin(encoding.timed ? static_cast<uint32_t>(encoding.steps.size()) + 1 : 0, encoding.repeated);
  // A run may end before it is through: by an error that a kernel reports, or between two submits.
  const bool may_end = impl.status != kNone || encoding.repeated || encoding.parts.size() > 1;
  encoding.saves = may_end && buffers.undo.saves(impl.method_index);
  if (encoding.repeated) {
    encoding.first = std::make_unique<Commands>(device);
    encoding.first->begin();
    if (encoding.saves) buffers.undo.save(impl.method_index, *encoding.first);
    copy(memory, encoding.before, *encoding.first);
    if (const Merged* merged = runs_steps(encoding)) {
      const Allocation words = TensorMemory::allocation(buffers.upload, encoding.ports.steps_offset, kStepBytes);
      encoding.step_words = reinterpret_cast<uint32_t*>(words.mapped);
      encoding.first->copy(words.slice, steps_of(*merged, encoding.merged_memory.front()));
    }
    encoding.first->end();
    encoding.last = std::make_unique<Commands>(device);
    encoding.last->begin();
    copy(memory, encoding.after, *encoding.last);
    encoding.last->host_barrier();
    encoding.last->end();
  } else if (encoding.saves) {
    buffers.undo.save(impl.method_index, commands);
  }
  commands.discard(encoding.images);
  Recorder(*device, impl, memory, encoding).record();
  commands.host_barrier();
  commands.end();
}

}  // namespace pumice::engine
