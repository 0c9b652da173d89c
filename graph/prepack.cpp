// SPDX-License-Identifier: Apache-2.0
// Raw constants that a node reads go to blocks that stay. Those that only packs read pass through temporary memory, a
// batch at a time, so that the peak is the packed weights plus one batch.
#include "graph/prepack.h"

#include <algorithm>
#include <cinttypes>
#include <set>

#include "graph/convert.h"
#include "graph/encode.h"

namespace pumice {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;  // of raw constants at once, unless one is larger

using Key = std::pair<uint32_t, DType>;  // a constant as a value of that type

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
      packs_.push_back({&graph, &pack});
      weights_.blocks_.expect(impl.bytes(pack.result));
      for (const uint32_t id : pack.inputs) {
        if (const auto key = constant(impl, id)) {
          bytes_[*key] = impl.bytes(impl.view_root(id));
          ++uses_[*key];
        }
      }
    }
  }

  void keep(uint32_t index, DType dtype, uint64_t bytes) {
    if (kept_.insert({index, dtype}).second) weights_.blocks_.expect(bytes);
    bytes_[{index, dtype}] = bytes;
  }

  void run() {
    for (const Key& key : kept_) {
      const Part part = allocate(bytes_[key], "weights");
      upload(key, part.slice);
      weights_.constants_[key] = part;
    }
    uploader_.submit();
    pack_all();
    uploader_.flush();
  }

 private:
  struct Job {
    const Graph* graph;
    const Pack* pack;
    Record record = {};
    const Graph::Impl& impl() const { return graph->impl(); }
  };

  static std::optional<Key> constant(const Graph::Impl& graph, uint32_t id) {
    const TensorInfo& root = graph.tensors[graph.view_root(id)];
    return root.home == Home::constant ? std::optional<Key>({root.ref, root.dtype}) : std::nullopt;
  }

  void keep(const Graph::Impl& graph, uint32_t id) {
    if (const auto key = constant(graph, id)) keep(key->first, key->second, graph.bytes(graph.view_root(id)));
  }

  Part allocate(uint64_t bytes, const char* what) { return weights_.blocks_.allocate(device_->memory(), bytes, what); }

  void upload(const Key& key, Slice target) {
    const std::span<const std::byte> source = constant_bytes(program_, key.first, external_);
    const std::string path = format("constants[%u]", key.first);
    const auto must_fit = [&](uint64_t position, const std::byte* in) {
      if (position != kNoPosition)
        fail(Code::BadGraph, Stage::prepack, path, "element %" PRIu64 " has no form on the device: %s",
             position + static_cast<uint64_t>(in - source.data()) / (key.second == DType::i64 ? 8 : 1),
             key.second == DType::i64 ? std::to_string(read_i64(in, position)).c_str()
                                      : "a bool that is neither 0 nor 1");
    };
    if (key.second == DType::i64) {
      uploader_.put(source, target, {8, 4, [&](std::byte* out, const std::byte* in, size_t count) {
                                       must_fit(narrow_i64(out, in, count), in);
                                     }});
    } else if (key.second == DType::boolean) {
      uploader_.put(source, target, {1, 1, [&](std::byte* out, const std::byte* in, size_t count) {
                                       must_fit(copy_bool(out, in, count), in);
                                     }});
    } else {
      uploader_.put(source, target);
    }
  }

  void pack_all() {
    std::vector<PipelineKey> pipelines;
    for (Job& job : packs_) {
      with_path(job.impl(), job.pack->call,
                [&] { job.record = launch(*job.graph, job.pack->launch, job.pack->inputs.size() + 1); });
      if (job.record.runs()) pipelines.push_back(pipeline_key(job.record));
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
    for (const uint32_t id : job.pack->inputs) {
      const auto key = constant(job.impl(), id);
      if (key && !kept_.contains(*key) && !raw_.contains(*key)) keys.insert(*key);
    }
    return keys;
  }

  uint64_t bytes_of(const std::set<Key>& keys) const {
    uint64_t bytes = 0;
    for (const Key& key : keys) bytes += padded(bytes_.at(key), alignment_);
    return bytes;
  }

  void upload_raw(const std::set<Key>& keys) {
    if (keys.empty()) return;
    const auto buffer = std::make_shared<Buffer>(
        device_->memory().buffer(bytes_of(keys), MemoryKind::device, "constants to be packed"));
    uint64_t offset = 0;
    for (const Key& key : keys) {
      const Part part = part_of(*buffer, offset, bytes_[key]);
      upload(key, part.slice);
      raw_[key] = {buffer, part};
      offset += padded(bytes_[key], alignment_);
    }
    uploader_.submit();
  }

  void run_batch(std::span<const Job> jobs) {
    Commands commands(device_);
    commands.begin();
    std::set<std::string> fresh;  // packed since the last barrier
    for (const Job& job : jobs) {
      std::vector<Slice> bindings;
      const Part result = allocate(job.impl().bytes(job.pack->result), job.pack->what.c_str());
      bindings.push_back(result.slice);
      for (const uint32_t id : job.pack->inputs) {
        bindings.push_back(input(job, id, fresh, commands));
        check_binding(device_->features(), bindings.back().bytes, job.pack->what.c_str());
      }
      check_binding(device_->features(), result.slice.bytes, job.pack->what.c_str());
      if (job.record.runs())
        commands.dispatch(device_->pipelines().get(pipeline_key(job.record)), bindings, job.record.push,
                          job.record.groups);
      weights_.packed_[job.pack->key] = result;
      fresh.insert(job.pack->key);
    }
    commands.end();
    device_->run(commands);
    for (const Job& job : jobs) {
      for (const uint32_t id : job.pack->inputs) {
        const auto key = constant(job.impl(), id);
        if (key && --uses_[*key] == 0) raw_.erase(*key);
      }
    }
  }

  Slice input(const Job& job, uint32_t id, std::set<std::string>& fresh, Commands& commands) {
    const uint64_t bytes = padded(job.impl().bytes(id), 16);
    Slice slice;
    if (const auto key = constant(job.impl(), id)) {
      slice = (kept_.contains(*key) ? weights_.constants_.at(*key) : raw_.at(*key).part).slice;
    } else {
      const std::string& made = job.impl().packs[job.impl().tensors[job.impl().view_root(id)].ref].key;
      slice = weights_.packed(made).slice;
      if (fresh.contains(made)) {
        commands.barrier();
        fresh.clear();
      }
    }
    slice.bytes = std::min(slice.bytes, bytes);
    return slice;
  }

  Weights& weights_;
  std::shared_ptr<Device> device_;
  const Program& program_;
  const ExternalData& external_;
  Uploader uploader_;
  const uint64_t alignment_;
  std::set<Key> kept_;             // raw constants that stay
  std::map<Key, uint64_t> bytes_;  // on the device
  std::map<Key, uint32_t> uses_;   // by packs still to be made
  std::map<Key, Raw> raw_;         // on the device for now
  std::vector<Job> packs_;
  std::set<std::string> keys_;
};

Weights::Weights(std::shared_ptr<Device> device, const Program& program, const ExternalData& external,
                 std::span<const std::unique_ptr<Graph>> graphs)
    : blocks_(device->features().storage_alignment) {
  Prepack prepack(*this, std::move(device), program, external);
  for (const auto& graph : graphs) prepack.collect(*graph);
  const std::vector<StateInfo> infos = states(program, graphs);
  for (size_t s = 0; s < infos.size(); ++s) {
    if (infos[s].used && program.states[s].constant >= 0)
      prepack.keep(static_cast<uint32_t>(program.states[s].constant), infos[s].dtype, infos[s].bytes);
  }
  prepack.run();
}

const Part& Weights::constant(uint32_t index, DType dtype) const {
  return constants_.at({index, dtype});
}
const Part& Weights::packed(const std::string& key) const {
  return packed_.at(key);
}

}  // namespace pumice
