// SPDX-License-Identifier: Apache-2.0
// Raw constants that a node reads go to blocks that stay. Those that only packs read pass through temporary memory, a
// batch at a time, so that the peak is the packed weights plus one batch; of a pack in parts only the binding_ranges.
// What another program has on the device already is not made again.
#include "graph/prepack.h"

#include <algorithm>
#include <cinttypes>
#include <set>

#include "graph/convert.h"
#include "graph/encode.h"
#include "graph/image.h"
#include "serialization/fingerprint.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;  // of raw constants at once, unless one is larger

// Bytes of a constant as a value of that type, counted as on the device.
struct Key {
  uint32_t constant;
  DType dtype;
  uint64_t begin = 0, bytes = 0;
  auto operator<=>(const Key&) const = default;
};

// A part of a buffer that goes when the last part of it does.
struct Raw {
  std::shared_ptr<Buffer> buffer;
  Part part;
};

}  // namespace

class Prepack {
 public:
  Prepack(Weights& weights, std::shared_ptr<Device> device, const Program& program, const ExternalData& external)
      : weights_(weights),
        device_(std::move(device)),
        program_(program),
        external_(external),
        uploader_(device_),
        alignment_(device_->features().storage_alignment) {}

  // Contents are asked for and told apart before others have to wait.
  void share(std::span<const std::unique_ptr<Graph>> graphs) {
    for (const auto& graph : graphs) {
      for (const TensorInfo& tensor : graph->impl().tensors) {
        if (tensor.home == Home::constant) content(tensor.ref);
      }
    }
    for (const State& state : program_.states) {
      if (state.constant >= 0) content(static_cast<uint32_t>(state.constant));
    }
    shared_.emplace(device_);
  }

  void collect(const Graph& graph) {
    const Graph::Impl& impl = graph.impl();
    for (const Node& node : impl.nodes) {
      for (const uint32_t id : node.reads) {
        if (id != kNone) keep(impl, id);
      }
    }
    for (const uint32_t id : impl.outputs) keep(impl, id);
    for (const Pack& pack : impl.packs) {
      if (!keys_.insert(pack.key).second) continue;
      if (const Part* known = find(shared_key(impl, pack))) {
        weights_.packed_[pack.key] = *known;
        continue;
      }
      if (impl.tensors[pack.result].storage == StorageClass::buffer) expect(impl.bytes(pack.result));
      std::vector<Dispatch> parts;
      with_path(impl, pack.call, [&] { parts = launch(graph, pack.launch, pack.inputs.size() + 1); });
      if (parts.empty()) parts.emplace_back();  // nothing to run, but the result has its place
      for (Dispatch& part : parts) {
        packs_.push_back({&graph, &pack, std::move(part)});
        for (size_t i = 0; i < pack.inputs.size(); ++i) {
          if (const auto key = constant(packs_.back(), i)) ++uses_[*key];
        }
      }
    }
  }

  void keep(uint32_t index, DType dtype, uint64_t bytes) {
    if (kept_.try_emplace({index, dtype}, bytes).second) expect(bytes);
  }

  void run() {
    for (const auto& [constant, bytes] : kept_) {
      const std::string key = shared_ ? format("raw %s ", name(constant.second)) + content(constant.first) : "";
      const Part* known = find(key);
      const Part part = known != nullptr ? *known : allocate(bytes, "weights", key);
      if (known == nullptr) upload({constant.first, constant.second, 0, bytes}, part.slice);
      weights_.constants_[constant] = part;
    }
    uploader_.submit();
    pack_all();
    uploader_.flush();
    for (const auto& [key, weight] : made_) shared_->add(key, weight);
  }

 private:
  struct Job {
    const Graph* graph;
    const Pack* pack;
    Dispatch part;
    const Graph::Impl& impl() const { return graph->impl(); }
    // Of the result (0), or of input i (i + 1).
    BindingRange binding_range(size_t binding) const {
      return binding < part.binding_ranges.size() ? part.binding_ranges[binding] : BindingRange{};
    }
  };

  // What a job reads of its input i, where that is a constant of the file.
  static std::optional<Key> constant(const Job& job, size_t i) {
    const uint32_t root = job.impl().view_root(job.pack->inputs[i]);
    const TensorInfo& info = job.impl().tensors[root];
    if (info.home != Home::constant) return std::nullopt;
    const BindingRange range = job.binding_range(i + 1);
    const uint64_t bytes = range.bytes != 0 ? range.bytes : job.impl().bytes(root) - range.begin;
    return Key{info.ref, info.dtype, range.begin, bytes};
  }

  void keep(const Graph::Impl& graph, uint32_t id) {
    const uint32_t root = graph.view_root(id);
    const TensorInfo& info = graph.tensors[root];
    if (info.home == Home::constant) keep(info.ref, info.dtype, graph.bytes(root));
  }

  void expect(uint64_t bytes) {
    if (!shared_) weights_.blocks_.expect(bytes);
  }

  // `key`: of what is shared.
  Part allocate(uint64_t bytes, const char* what, const std::string& key) {
    if (!shared_) return weights_.blocks_.allocate(device_->memory(), bytes, what);
    Buffer buffer = device_->memory().buffer(padded(bytes, alignment_), MemoryKind::device, what);
    const Part part = part_of(buffer, 0, bytes);
    add({device_, std::move(buffer), {}, part}, key);
    return part;
  }

  void add(SharedWeight&& weight, const std::string& key) {
    made_.emplace_back(key, std::make_shared<SharedWeight>(std::move(weight)));
    weights_.shared_.push_back(made_.back().second);
  }

  // What another program has on the device, or null.
  const Part* find(const std::string& key) {
    auto known = shared_ ? shared_->find(key) : nullptr;
    if (known == nullptr) return nullptr;
    weights_.shared_.push_back(std::move(known));
    return &weights_.shared_.back()->part;
  }

  std::string shared_key(const Graph::Impl& graph, const Pack& pack) {
    if (!shared_) return "";
    return pack_key(graph, pack.what, pack.inputs, graph.tensors[pack.result],
                    [&](uint32_t constant) { return content(constant); });
  }

  // A text for the bytes of a constant: equal for equal ones only.
  const std::string& content(uint32_t constant) {
    const auto [at, fresh] = contents_.try_emplace(constant);
    if (fresh) {
      const auto print = fingerprint(bytes(constant));
      at->second = format("%016" PRIx64 "%016" PRIx64 "/%zu", print[0], print[1], bytes(constant).size());
    }
    return at->second;
  }

  // External ones are asked for, and hashed, once.
  std::span<const std::byte> bytes(uint32_t constant) {
    const auto [at, fresh] = sources_.try_emplace(constant);
    if (fresh) at->second = constant_bytes(program_, constant, external_);
    return at->second;
  }

  std::span<const std::byte> source(const Key& key) {
    const std::span<const std::byte> all = bytes(key.constant);
    const uint64_t scale = key.dtype == DType::i64 ? 2 : 1;
    if (key.begin * scale > all.size() || key.bytes * scale > all.size() - key.begin * scale)
      fail(Code::Internal, Stage::prepack, format("constants[%u]", key.constant), "%" PRIu64 " bytes at %" PRIu64,
           key.bytes, key.begin);
    return all.subspan(key.begin * scale, key.bytes * scale);
  }

  void upload(const Key& key, Slice target) {
    const std::span<const std::byte> source = this->source(key);
    const std::string path = format("constants[%u]", key.constant);
    const auto must_fit = [&](uint64_t position, const std::byte* in) {
      if (position != kNoPosition)
        fail(Code::BadGraph, Stage::prepack, path, "element %" PRIu64 " has no form on the device: %s",
             position + static_cast<uint64_t>(in - source.data()) / (key.dtype == DType::i64 ? 8 : 1),
             key.dtype == DType::i64 ? std::to_string(read_i64(in, position)).c_str()
                                     : "a bool that is neither 0 nor 1");
    };
    if (key.dtype == DType::i64) {
      uploader_.put(source, target, {8, 4, [&](std::byte* out, const std::byte* in, size_t count) {
                                       must_fit(narrow_i64(out, in, count), in);
                                     }});
    } else if (key.dtype == DType::boolean) {
      uploader_.put(source, target, {1, 1, [&](std::byte* out, const std::byte* in, size_t count) {
                                       must_fit(copy_bool(out, in, count), in);
                                     }});
    } else {
      uploader_.put(source, target);
    }
  }

  void pack_all() {
    std::vector<PipelineKey> pipelines;
    for (const Job& job : packs_) {
      if (job.part.runs()) pipelines.push_back(pipeline_key(job.part));
    }
    device_->pipelines().prepare(pipelines);
    for (size_t first = 0; first < packs_.size();) {
      std::set<Key> batch;
      size_t last = first;
      do {
        batch.merge(missing(packs_[last]));
      } while (++last < packs_.size() && bytes_of(batch) + bytes_of(missing(packs_[last])) <= kBatchBytes);
      upload_raw(batch);
      run_batch(std::span(packs_).subspan(first, last - first));
      first = last;
    }
  }

  std::set<Key> missing(const Job& job) const {
    std::set<Key> keys;
    for (size_t i = 0; i < job.pack->inputs.size(); ++i) {
      const auto key = constant(job, i);
      if (key && !kept_.contains({key->constant, key->dtype}) && !raw_.contains(*key)) keys.insert(*key);
    }
    return keys;
  }

  uint64_t bytes_of(const std::set<Key>& keys) const {
    uint64_t bytes = 0;
    for (const Key& key : keys) bytes += padded(key.bytes, alignment_);
    return bytes;
  }

  void upload_raw(const std::set<Key>& keys) {
    if (keys.empty()) return;
    const auto buffer = std::make_shared<Buffer>(
        device_->memory().buffer(bytes_of(keys), MemoryKind::device, "constants to be packed"));
    uint64_t offset = 0;
    for (const Key& key : keys) {
      const Part part = part_of(*buffer, offset, key.bytes);
      upload(key, part.slice);
      raw_[key] = {buffer, part};
      offset += padded(key.bytes, alignment_);
    }
    uploader_.submit();
  }

  void run_batch(std::span<const Job> jobs) {
    Commands commands(device_);
    commands.begin();
    std::set<std::string> fresh;  // packed since the last barrier
    for (const Job& job : jobs) {
      std::vector<Slice> bindings{binding_range(result(job, commands).slice, job.binding_range(0))};
      for (size_t i = 0; i < job.pack->inputs.size(); ++i) bindings.push_back(input(job, i, fresh, commands));
      if (bindings[0].view != nullptr && fresh.contains(job.pack->key)) {  // parts of an image are bound as one
        commands.barrier();
        fresh.clear();
      }
      if (job.part.runs())
        commands.dispatch(device_->pipelines().get(pipeline_key(job.part)), bindings, job.part.push, job.part.groups);
      fresh.insert(job.pack->key);
    }
    commands.end();
    device_->run(commands);
    for (const Job& job : jobs) {
      for (size_t i = 0; i < job.pack->inputs.size(); ++i) {
        const auto key = constant(job, i);
        if (key && --uses_[*key] == 0) raw_.erase(*key);
      }
    }
  }

  const Part& result(const Job& job, Commands& commands) {
    const auto [at, fresh] = weights_.packed_.try_emplace(job.pack->key);
    if (!fresh) return at->second;
    const TensorInfo& info = job.impl().tensors[job.pack->result];
    const char* what = job.pack->what.c_str();
    const std::string key = shared_key(job.impl(), *job.pack);
    if (info.storage == StorageClass::buffer) {
      at->second = allocate(job.impl().bytes(job.pack->result), what, key);
      return at->second;
    }
    Image image = device_->memory().image(image_shape(info), what);
    commands.discard(std::span(&image, 1));
    at->second.slice.view = image.view();
    if (shared_) {
      add({device_, {}, std::move(image), at->second}, key);
    } else {
      weights_.images_.push_back(std::move(image));
    }
    return at->second;
  }

  Slice input(const Job& job, size_t i, std::set<std::string>& fresh, Commands& commands) {
    const uint32_t id = job.pack->inputs[i];
    if (const auto key = constant(job, i)) {
      const auto kept = kept_.find({key->constant, key->dtype});
      if (kept == kept_.end()) return raw_.at(*key).part.slice;
      return binding_range(weights_.constants_.at(kept->first).slice, {key->begin, key->bytes});
    }
    const std::string& made = job.impl().packs[job.impl().tensors[job.impl().view_root(id)].ref].key;
    if (fresh.contains(made)) {
      commands.barrier();
      fresh.clear();
    }
    Slice slice = weights_.packed(made).slice;
    slice.bytes = std::min(slice.bytes, padded(job.impl().bytes(id), 16));
    return binding_range(slice, job.binding_range(i + 1));
  }

  Weights& weights_;
  std::shared_ptr<Device> device_;
  const Program& program_;
  const ExternalData& external_;
  Uploader uploader_;
  const uint64_t alignment_;
  std::map<std::pair<uint32_t, DType>, uint64_t> kept_;     // constants that stay, and their bytes
  std::map<Key, uint32_t> uses_;                            // by packs still to be made
  std::map<Key, Raw> raw_;                                  // on the device for now
  std::map<uint32_t, std::span<const std::byte>> sources_;  // in the file, or outside
  std::map<uint32_t, std::string> contents_;
  std::optional<SharedWeights> shared_;
  std::vector<std::pair<std::string, std::shared_ptr<const SharedWeight>>> made_;  // by their keys
  std::vector<Job> packs_;
  std::set<std::string> keys_;
};

Weights::Weights(std::shared_ptr<Device> device, const Program& program, const ExternalData& external,
                 std::span<const std::unique_ptr<Graph>> graphs)
    : blocks_(device->features().storage_alignment) {
  Prepack prepack(*this, std::move(device), program, external);
  if (external) prepack.share(graphs);
  for (const auto& graph : graphs) prepack.collect(*graph);
  const std::vector<StateInfo> infos = states(program, graphs);
  for (size_t s = 0; s < infos.size(); ++s) {
    if (infos[s].used && program.states[s].constant >= 0)
      prepack.keep(static_cast<uint32_t>(program.states[s].constant), infos[s].dtype, infos[s].bytes);
  }
  prepack.run();
}

uint64_t Weights::texture_bytes() const {
  uint64_t bytes = 0;
  for (const Image& image : images_) bytes += image.bytes();
  for (const auto& weight : shared_) bytes += weight->image.bytes();
  return bytes;
}
uint64_t Weights::bytes() const {
  uint64_t bytes = blocks_.bytes();
  for (const auto& weight : shared_) bytes += weight->buffer.bytes();
  return bytes;
}
const Part& Weights::constant(uint32_t index, DType dtype) const {
  return constants_.at({index, dtype});
}
const Part& Weights::packed(const std::string& key) const {
  return packed_.at(key);
}

}  // namespace pumice::engine
