// SPDX-License-Identifier: Apache-2.0
#include "graph/prepack.h"

#include <algorithm>

#include "graph/bind.h"
#include "graph/image_shape.h"
#include "graph/infer.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;  // of temporary constants at once, unless one is larger

}  // namespace

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
    for (Dispatch& dispatch : dispatches) {
      jobs_.push_back({&graph, &packed, std::move(dispatch)});
      for (size_t i = 0; i < packed.inputs.size(); ++i) {
        if (const auto range = jobs_.back().constant(i)) ++uses_[*range];
      }
    }
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

void Prepack::run() {
  upload_kept();
  pack_all();
  source_.flush();
}

void Prepack::upload_kept() {
  for (const auto& [constant, bytes] : kept_) {
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

void Prepack::pack_all() {
  std::vector<PipelineKey> pipelines;
  for (const Job& job : jobs_) {
    if (job.dispatch.runs()) pipelines.push_back(pipeline_key(job.dispatch));
  }
  device_->pipelines().prepare(pipelines);
  for (size_t first = 0; first < jobs_.size();) {
    std::set<ConstantRange> batch;
    size_t last = first;
    do {
      batch.merge(missing(jobs_[last]));
    } while (++last < jobs_.size() && bytes_of(batch) + bytes_of(missing(jobs_[last])) <= kBatchBytes);
    upload_temporary(batch);
    run_batch(std::span(jobs_).subspan(first, last - first));
    first = last;
  }
}

std::set<ConstantRange> Prepack::missing(const Job& job) const {
  std::set<ConstantRange> ranges;
  for (size_t i = 0; i < job.packed->inputs.size(); ++i) {
    const auto range = job.constant(i);
    if (range && !kept_.contains({range->constant, range->dtype}) && !temporary_.contains(*range))
      ranges.insert(*range);
  }
  return ranges;
}

uint64_t Prepack::bytes_of(const std::set<ConstantRange>& ranges) const {
  uint64_t bytes = 0;
  for (const ConstantRange& range : ranges) bytes += padded(range.bytes, alignment_);
  return bytes;
}

void Prepack::upload_temporary(const std::set<ConstantRange>& ranges) {
  if (ranges.empty()) return;
  const auto buffer = std::make_shared<Buffer>(
      device_->memory().buffer(bytes_of(ranges), MemoryKind::device, "constants to be packed"));
  uint64_t offset = 0;
  for (const ConstantRange& range : ranges) {
    const Allocation allocation = allocation_of(*buffer, offset, range.bytes);
    source_.upload(range, allocation.slice);
    temporary_[range] = {buffer, allocation};
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
      commands.dispatch(device_->pipelines().get(pipeline_key(job.dispatch)), bindings, job.dispatch.push,
                        job.dispatch.groups);
    fresh.insert(job.packed->key);
  }
  commands.end();
  device_->run(commands);
  for (const Job& job : jobs) {
    for (size_t i = 0; i < job.packed->inputs.size(); ++i) {
      const auto range = job.constant(i);
      if (range && --uses_[*range] == 0) temporary_.erase(*range);
    }
  }
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
    if (resident == kept_.end()) return temporary_.at(*range).allocation.slice;
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
