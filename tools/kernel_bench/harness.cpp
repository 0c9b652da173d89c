// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/harness.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <set>

#include "graph/bind.h"
#include "graph/convert.h"
#include "graph/cost.h"
#include "graph/infer.h"
#include "graph/limits.h"
#include "ops/op.h"
#include "serialization/read.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/same_bytes.h"

namespace pumice::engine::kernel_bench {
namespace {

std::string name_of(const Graph::Impl& graph, uint32_t tensor) {
  const TensorInfo& info = graph.tensors[tensor];
  switch (info.memory) {
    case MemorySource::packed:
      return "packed constant '" + graph.packed_constants[info.ref].what + "'";
    case MemorySource::constant:
      return "constant '" + graph.method().values[tensor].name + "'";
    case MemorySource::status:
      return "status words";
    case MemorySource::counters:
      return "counters";
    default:
      break;
  }
  if (info.storage == StorageType::texture3d && info.other_storage != kNone) return name_of(graph, info.other_storage);
  if (info.value == kNone) return format("scratch tensor %u", tensor);
  const Value& value = graph.method().values[info.value];
  return std::string(name(value.kind)) + " '" + value.name + "'";
}

enum class When : uint8_t { before, now, after };

// Inputs are copied to textures before the kernels run, and outputs from textures afterwards; neither is timed.
When when(const Graph::Impl& graph, const Node& node) {
  if (node.reads.size() != 1 || graph.tensors[node.writes[0]].other_storage != node.reads[0]) return When::now;
  const auto is_in = [](const std::vector<uint32_t>& ids, uint32_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  if (is_in(graph.method().inputs, node.reads[0])) return When::before;
  return is_in(graph.outputs, node.writes[0]) ? When::after : When::now;
}

}  // namespace

Bytes on_device(DType dtype, const Bytes& bytes) {
  if (dtype != DType::i64) return bytes;
  Bytes narrow(bytes.size() / 2);
  if (narrow_i64(narrow.data(), bytes.data(), bytes.size() / 8) != kNoPosition)
    fail(Code::InvalidArgument, Stage::api, "case", "a number of an i64 tensor does not fit 32 bits");
  return narrow;
}

std::unique_ptr<Graph> build_with(const Loaded& loaded, const Features& features, const Forced& kernel) {
  Features forced = features;
  forced.kernel = kernel.kernel;
  if (kernel.untuned) forced.tuned = nullptr;
  forced.storage = StorageOverride::as_exported;  // the case has chosen already
  auto graph = build(*loaded.program, 0, forced, builder(), loaded.facts);
  infer(*graph, std::span(&kernel.m, loaded.program->methods[0].symbols.size()));
  return graph;
}

Loaded load(const std::shared_ptr<Device>& device, std::span<const std::byte> file, std::span<const Forced> kernels,
            const Features& features) {
  Loaded loaded{.device = device};
  const auto program = std::make_shared<Program>(read(file, signatures()));
  loaded.program = program;
  loaded.facts = std::make_shared<ConstantFacts>();
  // As Model::load does: every file must also run on a device with nothing optional.
  const bool is_product = program->methods[0].ops[0].op < op_table().size();
  const std::vector<Symbol>& symbols = program->methods[0].symbols;
  if (is_product) layout(*build_with(loaded, baseline_features(), {"", symbols.empty() ? 1 : symbols[0].hint}));
  for (const Forced& kernel : kernels) {
    loaded.graphs.push_back(build_with(loaded, features, kernel));
    layout(*loaded.graphs.back());
    check_weights(*loaded.graphs.back());
    check_bindings(*loaded.graphs.back());
  }
  loaded.weights = std::make_shared<Weights>(device, *program, ExternalData{}, loaded.graphs);
  program->data = {};
  return loaded;
}

Harness::Harness(const Loaded& loaded, const Graph& graph, Transfers& transfers, const HarnessOptions& options)
    : loaded_(loaded),
      graph_(graph),
      transfers_(transfers),
      options_(options),
      layout_(layout(graph)),
      textures_(loaded.device, options.slots, options.guard_bytes != 0) {
  Device& device = *loaded_.device;
  const Features& features = device.features();
  // Inputs and outputs in place, without staging: then the only steps are kernels and the operators' own copies.
  const std::vector<Step> all = steps(graph_, layout_, ports(graph_, layout_, true), true, false);
  const auto need = [&](uint32_t tensor) {
    if (tensor == kNone) return;
    const TensorInfo& info = impl().tensors[layout_.memory_root[tensor]];
    if (info.storage != StorageType::buffer)
      return textures_.add(layout_.memory_root[tensor], info, name_of(impl(), tensor));
    Place& place = places_[layout_.memory_root[tensor]];
    place.bytes = std::max(place.bytes, layout_.bytes[tensor]);
  };
  for (const uint32_t id : impl().outputs) need(id);  // an output that is a view of an input is not written by any step
  for (const Step& step : all) {
    if (step.node == kNone) continue;
    const Node& node = impl().nodes[step.node];
    for (const uint32_t id : node.reads) need(id);
    for (const uint32_t id : node.writes) need(id);
    const When when = kernel_bench::when(impl(), node);
    (when == When::before ? before_ : when == When::after ? after_ : steps_).push_back(step);
  }
  if (!steps_.empty()) steps_[0].barrier = false;
  for (auto& [tensor, place] : places_) {
    place.name = name_of(impl(), tensor);
    place.stride = padded(place.bytes + options_.guard_bytes, features.storage_alignment);
    const uint64_t bytes = padded(options_.guard_bytes, features.storage_alignment) + options_.slots * place.stride;
    place.buffer = device.memory().buffer(bytes, MemoryKind::device, place.name.c_str());
  }
  empty_ = device.memory().buffer(16, MemoryKind::device, "empty");
}

// The binding includes the guard after the tensor: a driver that checks bounds, as CPU drivers do, would otherwise drop
// a wrong write, and the test would not see it.
Slice Harness::binding(uint32_t tensor, const BindingRange& part, uint32_t slot) const {
  if (tensor == kNone) return {empty_.handle(), 0, 16};
  if (textures_.has(layout_.memory_root[tensor])) return textures_.slice(layout_.memory_root[tensor], slot);
  const Slice all = slice(tensor, slot);
  Slice bound = binding_range(all, part);
  if (bound.offset + bound.bytes == all.offset + all.bytes)
    bound.bytes = std::min(bound.bytes + options_.guard_bytes, loaded_.device->features().max_storage_bytes);
  return bound;
}

uint64_t Harness::front() const {
  return options_.guard_bytes == 0 ? 0 : padded(options_.guard_bytes, loaded_.device->features().storage_alignment);
}

Slice Harness::slice(uint32_t tensor, uint32_t slot) const {
  const Place& place = places_.at(layout_.memory_root[tensor]);
  return {place.buffer.handle(), front() + slot * place.stride, layout_.bytes[tensor]};
}

void Harness::reset(uint32_t word, std::span<const Data> inputs) {
  stage(inputs);
  transfers_.run([&](Commands& commands) {
    for (const auto& [tensor, place] : places_) commands.fill({place.buffer.handle(), 0, place.buffer.bytes()}, word);
    textures_.fill(commands, word);
    for (uint32_t id = 0; id < impl().tensors.size(); ++id) {
      const TensorInfo& info = impl().tensors[id];
      if (info.memory == MemorySource::packed && textures_.has(id))
        textures_.copy_weight(commands, id, loaded_.weights->packed(impl().packed_constants[info.ref].key).slice, word);
    }
    commands.barrier();
    for (const auto& [tensor, place] : places_) {
      const TensorInfo& info = impl().tensors[tensor];
      Slice source;
      if (info.memory == MemorySource::packed)
        source = loaded_.weights->packed(impl().packed_constants[info.ref].key).slice;
      if (info.memory == MemorySource::constant) source = loaded_.weights->constant(info.ref, info.dtype).slice;
      if (source.buffer == nullptr) continue;
      for (uint32_t slot = 0; slot < options_.slots; ++slot) {
        const Slice all = slice(tensor, slot);
        commands.copy(source, {all.buffer, all.offset, std::min(source.bytes, place.bytes)});
      }
    }
    for (const uint32_t counters : impl().counters) clear(commands, counters);
    clear(commands, impl().status);
    put_staged(commands, word);
  });
  if (options_.guard_bytes != 0) textures_.remember();
}

void Harness::clear_report() {
  if (!places_.contains(impl().status)) return;
  transfers_.run([&](Commands& commands) { clear(commands, impl().status); });
}

void Harness::clear(Commands& commands, uint32_t tensor) const {
  if (!places_.contains(tensor)) return;
  for (uint32_t slot = 0; slot < options_.slots; ++slot) commands.fill(slice(tensor, slot), 0);
}

bool Harness::overwrites_inputs() const {
  const std::vector<uint32_t>& inputs = impl().method().inputs;
  return std::any_of(inputs.begin(), inputs.end(), [&](uint32_t input) {
    return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      if (step.node == kNone) return false;
      const std::vector<uint32_t>& writes = impl().nodes[step.node].writes;
      return std::any_of(writes.begin(), writes.end(), [&](uint32_t id) {
        return id != kNone && layout_.memory_root[id] == layout_.memory_root[input];
      });
    });
  });
}

void Harness::put_inputs(uint32_t word, std::span<const Data> inputs) {
  stage(inputs);
  transfers_.run([&](Commands& commands) { put_staged(commands, word); });
  if (options_.guard_bytes != 0) textures_.remember();
}

void Harness::stage(std::span<const Data> inputs) {
  staged_.clear();
  const std::vector<uint32_t>& ids = impl().method().inputs;
  uint64_t bytes = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!places_.contains(layout_.memory_root[ids[i]])) continue;  // no kernel reads it
    staged_.push_back({ids[i], i, bytes});
    bytes += padded(impl().bytes(ids[i]), 16);
  }
  std::byte* const up = transfers_.upload(bytes).mapped();
  for (const Staged& each : staged_) {
    const Data& input = inputs[each.input];
    const Bytes given = on_device(input.dtype, input.bytes);
    std::memcpy(up + each.offset, given.data(), impl().bytes(each.tensor));
  }
}

void Harness::put_staged(Commands& commands, uint32_t word) const {
  for (const Staged& each : staged_) {
    const uint64_t bytes = impl().bytes(each.tensor);
    if (bytes == 0) continue;
    for (uint32_t slot = 0; slot < options_.slots; ++slot) {
      const Slice all = slice(each.tensor, slot);
      commands.copy({transfers_.upload(0).handle(), each.offset, bytes}, {all.buffer, all.offset, bytes});
    }
  }
  commands.barrier();
  for (uint32_t slot = 0; slot < options_.slots; ++slot) dispatch(commands, before_, slot);
  commands.barrier();
  textures_.fill_tails(commands, word);
}

void Harness::run(const Commands& kernels) {
  loaded_.device->run(kernels);
  if (!after_.empty()) transfers_.run([&](Commands& commands) { dispatch(commands, after_, 0); });
}

std::optional<HostReport> Harness::report() {
  if (!places_.contains(impl().status)) return std::nullopt;
  uint32_t words[4];
  const Slice status = slice(impl().status, 0);
  const Slice slices[] = {{status.buffer, status.offset, sizeof(words)}};
  std::memcpy(words, transfers_.read(slices).data(), sizeof(words));
  if (words[0] == 0) return std::nullopt;
  if (words[0] != 1)
    fail(Code::Internal, Stage::execute, "", "a kernel reports trouble in operator call %u", words[0] - 1);
  return HostReport{words[1], static_cast<int32_t>(words[2]), static_cast<int32_t>(words[3])};
}

Bytes Harness::read_output(size_t index) {
  const Slice output = slice(impl().outputs[index], 0);
  const Slice slices[] = {{output.buffer, output.offset, output_bytes(index)}};
  return transfers_.read(slices);
}

std::optional<uint32_t> Harness::first_other(uint32_t count) {
  std::vector<Slice> outputs;
  for (size_t i = 0; i < impl().outputs.size(); ++i) {
    const Slice output = slice(impl().outputs[i], 0);
    if (output_bytes(i) != 0) outputs.push_back({output.buffer, output.offset, output_bytes(i)});
  }
  return kernel_bench::first_other(*loaded_.device, transfers_, outputs, count, [&](Commands& commands) {
    clear(commands, impl().status);
    commands.barrier();
    dispatch(commands, 0);
  });
}

std::string Harness::damage(uint32_t word) {
  struct Band {
    const Place* place;
    uint64_t first, bytes;
  };
  std::vector<Band> bands;
  std::vector<Slice> slices;
  for (const auto& [tensor, place] : places_) {
    const uint64_t start = slice(tensor, 0).offset, end = start + place.bytes;
    for (const auto& [first, bytes] : {std::pair{uint64_t{0}, start}, std::pair{end, place.stride - place.bytes}}) {
      bands.push_back({&place, first, bytes / 4 * 4});
      slices.push_back({place.buffer.handle(), first, bytes / 4 * 4});
    }
  }
  const Bytes all = transfers_.read(slices);
  const std::byte* next = all.data();
  for (const Band& band : bands) {
    for (uint64_t at = 0; at < band.bytes; at += 4, next += 4) {
      uint32_t found;
      std::memcpy(&found, next, 4);
      if (found == word) continue;
      const int64_t where = static_cast<int64_t>(band.first + at) - static_cast<int64_t>(front());
      return format("byte %" PRId64 " of the %s (it has %" PRIu64 ") was written: %#x, not %#x", where,
                    band.place->name.c_str(), band.place->bytes, found, word);
    }
  }
  return textures_.damage();
}

void Harness::dispatch(Commands& commands, std::span<const Step> steps, uint32_t slot) const {
  Device& device = *loaded_.device;
  for (const Step& step : steps) {
    if (step.barrier) commands.barrier();
    if (step.kind == StepKind::host) continue;
    const Node& node = impl().nodes[step.node];
    if (step.kind == StepKind::copy) {
      commands.copy(slice(node.reads[0], slot), slice(node.writes[0], slot));
      continue;
    }
    const ResolveBinding resolve = [&](uint32_t tensor, const BindingRange& part) {
      return binding(tensor, part, slot);
    };
    for (uint32_t d = 0; d < node.dispatches.size(); ++d) {
      if (d > 0) commands.barrier();
      const Piece whole{.step = 0, .dispatch = d, .groups = node.dispatches[d].groups};
      pumice::engine::dispatch(device, node, whole, resolve, commands);
    }
  }
}

std::string Harness::shaders() const {
  std::string names;
  for (const Step& step : steps_) {
    if (step.kind != StepKind::dispatch) continue;
    if (impl().nodes[step.node].dispatches.empty()) continue;  // no dispatch at these sizes
    const std::string part = impl().nodes[step.node].dispatches[0].shader->name;
    names += (names.empty() ? "" : "+") + part;
  }
  return names;
}

bool Harness::uses(Feature feature) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
    if (step.kind != StepKind::dispatch) return false;
    const std::vector<Dispatch>& all = impl().nodes[step.node].dispatches;
    return std::any_of(all.begin(), all.end(),
                       [&](const Dispatch& each) { return (each.shader->features & bit(feature)) != 0; });
  });
}

uint64_t Harness::output_bytes(size_t index) const {
  return impl().bytes(impl().outputs[index]);
}

uint64_t Harness::launch_bytes() const {
  uint64_t bytes = 0;
  for (const Step& step : steps_) {
    if (step.kind != StepKind::dispatch) continue;
    const Node& node = impl().nodes[step.node];
    for (const Dispatch& dispatch : node.dispatches) {
      bytes += dispatch.bytes;
      if (dispatch.bytes != 0) continue;
      std::set<uint32_t> tensors(node.reads.begin(),
                                 node.reads.end());  // a tensor can appear twice, in place of an absent argument
      tensors.insert(node.writes.begin(), node.writes.end());
      for (const uint32_t id : tensors) bytes += id == kNone ? 0 : layout_.bytes[id];
    }
  }
  return bytes;
}

Operations Harness::launch_operations() const {
  Operations all{};
  for (const Step& step : steps_) {
    if (step.kind == StepKind::dispatch) add_operations(impl().nodes[step.node], all);
  }
  return all;
}

void Harness::overwrite_guard(uint32_t word) {
  const uint32_t output = impl().outputs[0], texture = impl().tensors[output].other_storage;
  if (texture != kNone && textures_.has(texture))
    textures_.overwrite(texture, word);
  else
    overwrite(padded(output_bytes(), 16), word);
}

void Harness::overwrite(uint64_t byte, uint32_t word) {
  const Slice output = slice(impl().outputs[0], 0);
  transfers_.run([&](Commands& commands) { commands.fill({output.buffer, output.offset + byte / 4 * 4, 4}, word); });
}

uint64_t Harness::slot_bytes() const {
  uint64_t bytes = textures_.slot_bytes();
  for (const auto& [tensor, place] : places_) bytes += place.stride;
  return bytes;
}

}  // namespace pumice::engine::kernel_bench
