// SPDX-License-Identifier: Apache-2.0
#include "graph/prepack.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "graph/bind.h"
#include "graph/image_shape.h"
#include "graph/infer.h"

namespace pumice::engine {

Prepack::Prepack(std::shared_ptr<Device> device, ConstantSource& source, WeightMemory& memory, WeightTable& table)
    : device_(std::move(device)),
      source_(source),
      memory_(memory),
      table_(table),
      alignment_(device_->features().storage_alignment) {}

BindingRange Prepack::Job::binding_range(size_t binding) const {
  return binding < dispatch.binding_ranges.size() ? dispatch.binding_ranges[binding] : BindingRange{};
}

std::optional<ConstantRange> Prepack::Job::constant(size_t i) const {
  const uint32_t root = impl().view_root(packed->inputs[i]);
  const TensorInfo& info = impl().tensors[root];
  if (info.memory != MemorySource::constant) return std::nullopt;
  const BindingRange range = binding_range(i + 1);
  const uint64_t bytes = range.bytes != 0 ? range.bytes : impl().bytes(root) - range.begin;
  return ConstantRange{info.ref, info.dtype, range.begin, bytes};
}

void Prepack::collect(const Graph& graph) {
  const Graph::Impl& impl = graph.impl();
  for (const Node& node : impl.nodes) {
    for (const uint32_t id : node.reads) {
      if (id != kNone) keep(impl, id);
    }
  }
  for (const uint32_t id : impl.outputs) keep(impl, id);
  for (const PackedConstant& packed : impl.packed_constants) {
    if (!keys_.insert(packed.key).second) continue;
    if (const Allocation* known = memory_.find(key_of(impl, packed))) {
      table_.packed[packed.key] = *known;
      continue;
    }
    if (impl.tensors[packed.result].storage == StorageType::buffer) memory_.expect(impl.bytes(packed.result));
    std::vector<Dispatch> dispatches;
    with_path(impl, packed.call, [&] { dispatches = launch(graph, packed.launch, packed.inputs.size() + 1); });
    if (dispatches.empty()) dispatches.emplace_back();  // nothing to run, but the result needs its memory
    for (Dispatch& dispatch : dispatches) jobs_.push_back({&graph, &packed, std::move(dispatch)});
  }
}

void Prepack::keep(const Graph::Impl& graph, uint32_t id) {
  const uint32_t root = graph.view_root(id);
  const TensorInfo& info = graph.tensors[root];
  if (info.memory == MemorySource::constant) keep(info.ref, info.dtype, graph.bytes(root));
}

void Prepack::keep(uint32_t constant, DType dtype, uint64_t bytes) {
  if (kept_.try_emplace({constant, dtype}, bytes).second) memory_.expect(bytes);
}

void Prepack::plan() {
  std::vector<std::vector<ConstantRange>> reads(jobs_.size());
  for (size_t j = 0; j < jobs_.size(); ++j) {
    for (size_t i = 0; i < jobs_[j].packed->inputs.size(); ++i) {
      if (const auto range = jobs_[j].constant(i); range && !is_kept(*range)) reads[j].push_back(*range);
    }
  }
  batches_ = pack_batches(reads, alignment_);
}

// Takes the same steps as run(), in the same order.
MemoryNeed Prepack::need() {
  plan();
  WeightMemory::Forecast weights = memory_.forecast();
  MemoryNeed need;
  uint64_t temporary = 0;  // now on the device
  const auto note = [&] {
    need.weights = weights.bytes();
    need.loading = std::max(need.loading, need.weights + need.weight_textures + temporary);
  };
  for (const auto& [constant, bytes] : kept_) weights.add(bytes);
  note();
  std::unordered_set<std::string_view> made;
  for (const PackBatch& batch : batches_) {
    temporary += batch.bytes;
    for (const Job& job : std::span(jobs_).subspan(batch.first, batch.last - batch.first)) {
      if (!made.insert(job.packed->key).second) continue;
      const TensorInfo& result = job.impl().tensors[job.packed->result];
      if (result.storage == StorageType::buffer) {
        weights.add(job.impl().bytes(job.packed->result));
      } else {
        need.weight_textures += device_->memory().image_bytes(image_shape(result));
      }
    }
    note();
    for (const size_t done : batch.done) temporary -= batches_[done].bytes;
  }
  return need;
}

void Prepack::run(const Deadline& deadline) {
  uint64_t bytes = 0;
  for (const auto& [constant, kept] : kept_) bytes += padded(kept, 16);
  for (const PackBatch& batch : batches_) bytes += batch.bytes;
  source_.expect(bytes);
  try {
    upload_kept(deadline);
    pack_all(deadline);
    source_.flush();
  } catch (...) {
    source_.wait();  // copies under way write to memory that is freed now
    throw;
  }
}

void Prepack::upload_kept(const Deadline& deadline) {
  for (const auto& [constant, bytes] : kept_) {
    deadline.require(Stage::prepack, "copying a constant to the device");
    const auto [index, dtype] = constant;
    const std::string key = memory_.is_shared() ? format("raw %s ", name(dtype)) + source_.content(index) : "";
    const Allocation* known = memory_.find(key);
    const Allocation allocation = known != nullptr ? *known : memory_.allocate(bytes, "weights", key);
    if (known == nullptr) source_.upload({index, dtype, 0, bytes}, allocation.slice);
    table_.constants[constant] = allocation;
  }
  source_.submit();
}

// What tells the packed constant from those of other programs.
std::string Prepack::key_of(const Graph::Impl& graph, const PackedConstant& packed) {
  if (!memory_.is_shared()) return "";
  return packed_key(graph, packed.what, packed.inputs, graph.tensors[packed.result],
                    [&](uint32_t constant) { return source_.content(constant); });
}

void Prepack::pack_all(const Deadline& deadline) {
  std::vector<PipelineKey> pipelines;
  for (const Job& job : jobs_) {
    if (job.dispatch.runs()) pipelines.push_back(pipeline_key(job.dispatch));
  }
  device_->pipelines().prepare(pipelines, deadline);
  buffers_.resize(batches_.size());
  for (size_t b = 0; b < batches_.size(); ++b) {
    const PackBatch& batch = batches_[b];
    deadline.require(Stage::prepack, "packing weights");
    if (batch.bytes > 0)
      buffers_[b] = device_->memory().buffer(batch.bytes, MemoryKind::device, "constants to be packed");
    upload_temporary(batch, buffers_[b]);
    run_batch(std::span(jobs_).subspan(batch.first, batch.last - batch.first));
    for (const size_t done : batch.done) buffers_[done] = Buffer();
  }
}

void Prepack::upload_temporary(const PackBatch& batch, const Buffer& buffer) {
  uint64_t offset = 0;
  for (const ConstantRange& range : batch.ranges) {
    temporary_[range] = allocation_of(buffer, offset, range.bytes);
    source_.upload(range, temporary_[range].slice);
    offset += padded(range.bytes, alignment_);
  }
  source_.submit();
}

void Prepack::run_batch(std::span<const Job> jobs) {
  Commands commands(device_);
  commands.begin();
  std::set<std::string> fresh;  // packed since the last barrier
  for (const Job& job : jobs) {
    std::vector<Slice> bindings{binding_range(result(job, commands).slice, job.binding_range(0))};
    for (size_t i = 0; i < job.packed->inputs.size(); ++i) bindings.push_back(input(job, i, fresh, commands));
    if (bindings[0].view != nullptr && fresh.contains(job.packed->key)) {  // dispatches bind the whole image
      commands.barrier();
      fresh.clear();
    }
    if (job.dispatch.runs())
      commands.dispatch(device_->pipelines().get(pipeline_key(job.dispatch)), bindings,
                        push_constants(device_->memory(), job.dispatch, bindings), job.dispatch.groups);
    fresh.insert(job.packed->key);
  }
  commands.end();
  device_->run(commands);
}

const Allocation& Prepack::result(const Job& job, Commands& commands) {
  const auto [at, fresh] = table_.packed.try_emplace(job.packed->key);
  if (!fresh) return at->second;
  const TensorInfo& info = job.impl().tensors[job.packed->result];
  const char* what = job.packed->what.c_str();
  const std::string key = key_of(job.impl(), *job.packed);
  at->second = info.storage == StorageType::buffer ? memory_.allocate(job.impl().bytes(job.packed->result), what, key)
                                                   : memory_.allocate_image(image_shape(info), what, key, commands);
  return at->second;
}

Slice Prepack::input(const Job& job, size_t i, std::set<std::string>& fresh, Commands& commands) {
  const uint32_t id = job.packed->inputs[i];
  if (const auto range = job.constant(i)) {
    const auto resident = kept_.find({range->constant, range->dtype});
    if (resident == kept_.end()) return temporary_.at(*range).slice;
    return binding_range(table_.constants.at(resident->first).slice, {range->begin, range->bytes});
  }
  const std::string& key = job.impl().packed_constants[job.impl().tensors[job.impl().view_root(id)].ref].key;
  if (fresh.contains(key)) {
    commands.barrier();
    fresh.clear();
  }
  Slice slice = table_.packed.at(key).slice;
  slice.bytes = std::min(slice.bytes, padded(job.impl().bytes(id), 16));
  return binding_range(slice, job.binding_range(i + 1));
}

}  // namespace pumice::engine
