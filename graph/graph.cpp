// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <cinttypes>

#include "base/checked.h"
#include "graph/graph_impl.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kIndices = uint64_t{1} << 32;  // of invocations: a kernel counts them in 32 bits
constexpr int64_t kElements = int64_t{1} << 31;   // no tensor has so many

std::vector<uint32_t> ids(const std::vector<Tensor>& tensors) {
  std::vector<uint32_t> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor ? tensor.id() : kNone);
  return result;
}

[[noreturn]] void bug(const Graph::Impl& graph, const char* what) {
  fail(Code::Internal, Stage::plan, graph.path(graph.call), "the operator %s", what);
}

// A call may write only its outputs and its temporaries.
void check_writes(const Graph::Impl& graph, const std::vector<uint32_t>& writes) {
  if (writes.empty()) bug(graph, "writes nothing");
  if (graph.copying) return;
  for (const uint32_t id : writes) {
    if (id == kNone) bug(graph, "writes an empty tensor");
    const TensorInfo& tensor = graph.tensors[id];
    const bool fresh = tensor.memory == MemorySource::status || tensor.memory == MemorySource::counters ||
                       (tensor.memory == MemorySource::arena && tensor.base == kNone);
    const bool own = tensor.value == kNone || graph.writer[tensor.value] == graph.call;
    if (!fresh || !own) bug(graph, "writes a tensor that is not its own");
  }
}

void add_dispatch(Graph::Impl& graph, const std::vector<Tensor>& writes, const std::vector<Tensor>& reads,
                  LaunchFunction&& launch, uint32_t in_place) {
  Node node{
      .kind = NodeKind::dispatch, .in_place = in_place, .call = graph.call, .writes = ids(writes), .reads = ids(reads)};
  check_writes(graph, node.writes);
  if (in_place > std::min(node.reads.size(), node.writes.size())) bug(graph, "works in place on nothing");
  node.launch = std::move(launch);
  for (const Tensor& read : reads) {
    if (read) graph.materialize(read);
  }
  for (const uint32_t id : node.writes) graph.tensors[id].materialized = true;
  graph.nodes.push_back(std::move(node));
}

}  // namespace

Graph::Graph() : impl_(std::make_unique<Impl>()) {}
Graph::~Graph() = default;

void Graph::dispatch(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch) {
  add_dispatch(*impl_, writes, reads, std::move(launch), 0);
}

void Graph::dispatch_in_place(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch,
                              uint32_t pairs) {
  add_dispatch(*impl_, writes, reads, std::move(launch), pairs);
}

bool Graph::shares(Tensor a, Tensor b) const {
  if (Node* node = impl_->launching) node->used_tensors.insert(node->used_tensors.end(), {a.id(), b.id()});
  return impl_->memory_root(a.id()) == impl_->memory_root(b.id());
}

void Graph::view(Tensor out, Tensor in, ShapeFunction shape) {
  add_view(out, in, std::move(shape), false);
}

void Graph::view_first(Tensor out, Tensor in, ShapeFunction shape) {
  add_view(out, in, std::move(shape), true);
}

void Graph::add_view(Tensor out, Tensor in, ShapeFunction shape, bool first) {
  Node node{.kind = NodeKind::view, .call = impl_->call, .writes = ids({out}), .reads = ids({in})};
  node.first = first;
  check_writes(*impl_, node.writes);
  if (!in || device_bytes(out.dtype()) != device_bytes(in.dtype())) bug(*impl_, "views elements of another size");
  node.shape = std::move(shape);
  impl_->materialize(in);
  impl_->tensors[out.id()].materialized = true;
  impl_->tensors[out.id()].is_part = first || impl_->tensors[in.id()].is_part;
  impl_->tensors[out.id()].base = impl_->view_root(in.id());  // the root, never a chain of views
  impl_->nodes.push_back(std::move(node));
}

Tensor Graph::prepack(const std::string& what, std::vector<Tensor> inputs, DType dtype, const Shape& shape,
                      LaunchFunction launch, StorageType storage) {
  TensorInfo result{.dtype = dtype,
                    .rank = static_cast<uint32_t>(shape.size()),
                    .memory = MemorySource::packed,
                    .ref = static_cast<uint32_t>(impl_->packed_constants.size()),
                    .storage = storage,
                    .shape = shape};
  PackedConstant packed{.key = "",
                        .what = what,
                        .call = impl_->call,
                        .inputs = ids(inputs),
                        .result = kNone,
                        .launch = std::move(launch)};
  for (const uint32_t id : packed.inputs) {
    if (id == kNone || !Tensor(this, id).is_constant())
      fail(Code::BadGraph, Stage::plan, impl_->path(impl_->call), "%s: the tensor must be a constant", what.c_str());
    impl_->tensors[id].as_texture |= storage == StorageType::texture2d;
  }
  const auto number = [](uint32_t constant) { return std::to_string(constant); };
  std::string key = packed_key(*impl_, what, packed.inputs, result, number);
  const auto [known, fresh] =
      impl_->packed_index.try_emplace(key, static_cast<uint32_t>(impl_->packed_constants.size()));
  if (!fresh) return Tensor(this, impl_->packed_constants[known->second].result);
  packed.key = std::move(key);
  packed.result = impl_->add(std::move(result));
  impl_->bytes(packed.result);
  impl_->packed_constants.push_back(std::move(packed));
  return Tensor(this, impl_->packed_constants.back().result);
}

bool Graph::in_texture(Tensor value) const {
  const TensorInfo& tensor = impl_->tensors[value.id()];
  if (impl_->features.storage != StorageOverride::as_exported)
    return impl_->features.storage == StorageOverride::textures;
  return tensor.value != kNone && impl_->method().values[tensor.value].storage != StorageType::buffer;
}

Tensor Graph::texture_out(Tensor value) {
  TensorInfo& tensor = impl_->tensors[value.id()];
  if (tensor.other_storage == kNone) {
    const TensorInfo texture{.dtype = tensor.dtype,
                             .rank = tensor.rank,
                             .storage = StorageType::texture3d,
                             .other_storage = value.id(),
                             .shape = tensor.shape};
    const uint32_t id = impl_->add(texture);  // may move the other elements
    impl_->tensors[value.id()].other_storage = id;
    impl_->tensors[value.id()].as_texture = true;
  }
  return Tensor(this, impl_->tensors[value.id()].other_storage);
}

Tensor Graph::texture(Tensor value) {
  const Tensor result = texture_out(value);
  impl_->materialize(result);
  return result;
}

bool Graph::is_zero(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  return tensor.memory == MemorySource::constant && impl_->facts->is_zero(*impl_->program, tensor.ref);
}

std::optional<Graph::Exponents> Graph::half_exponents(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  if (tensor.memory != MemorySource::constant || tensor.dtype != DType::f16) return std::nullopt;
  return impl_->facts->half_exponents(*impl_->program, tensor.ref);
}

std::optional<Graph::Scale> Graph::bad_scale(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  const bool is_scale = tensor.dtype == DType::f16 || tensor.dtype == DType::f32;
  if (tensor.memory != MemorySource::constant || !is_scale) return std::nullopt;
  return impl_->facts->bad_scale(*impl_->program, tensor.ref, tensor.dtype);
}

Tensor Graph::scratch(DType dtype, uint32_t rank) {
  device_bytes(dtype);
  return Tensor(this, impl_->add({.dtype = dtype, .rank = rank, .shape = Shape(rank, 0)}));
}

Tensor Graph::status() {
  if (impl_->status == kNone)
    impl_->status = impl_->add({.dtype = DType::i32, .rank = 1, .memory = MemorySource::status, .shape = {4}});
  return Tensor(this, impl_->status);
}

void Graph::steps_suit(Tensor input, std::function<bool(std::span<const std::byte>)> suits) {
  impl_->step_conditions.emplace_back(input.id(), std::move(suits));
}

Tensor Graph::counters(int64_t count, uint32_t set) {
  std::vector<uint32_t>& sets = impl_->counters;
  const auto is_it = [&](uint32_t id) { return impl_->tensors[id].ref == set; };
  auto found = std::find_if(sets.begin(), sets.end(), is_it);
  if (found == sets.end()) {
    const TensorInfo info{.dtype = DType::i32, .rank = 1, .memory = MemorySource::counters, .ref = set, .shape = {0}};
    found = sets.insert(sets.end(), impl_->add(info));
  }
  int64_t& words = impl_->tensors[*found].shape[0];
  words = std::max(words, count);
  return Tensor(this, *found);
}

uint32_t Graph::call_id() const {
  return impl_->call;
}

const Features& Graph::features() const {
  return impl_->features;
}

std::shared_ptr<void>& Graph::shared_slot(const std::string& key) {
  return impl_->shared[key];
}

void Launch::over(uint64_t count, uint32_t size) {
  size = std::min(size, features.max_invocations);
  over_groups(count / size + (count % size != 0), size);
}

void Launch::over_groups(uint64_t count, uint32_t size) {
  const uint64_t most = features.max_groups[0], rows = count / most + (count % most != 0);
  // Rows of equal length, so that few workgroups are empty.
  const uint64_t columns = rows == 0 ? 0 : count / rows + (count % rows != 0);
  if (rows > features.max_groups[1] || (CheckedU64(columns) * rows * size).value().value_or(kIndices + 1) > kIndices)
    fail(Code::LimitExceeded, Stage::plan, "", "%" PRIu64 " workgroups of %u are more than one dispatch takes", count,
         size);
  groups = {static_cast<uint32_t>(columns), static_cast<uint32_t>(rows), 1};
  if (spec.empty()) spec.push_back(size);
  spec[0] = size;
}

void Launch::next_dispatch() {
  Dispatch& dispatch = *this;
  dispatches.push_back(std::move(dispatch));
  dispatch = Dispatch{};
}

int64_t Launch::size(SymInt size) const {
  const int64_t value = graph.impl().size(size);
  if (value < -kElements || value > kElements)
    fail(Code::LimitExceeded, Stage::plan, "", "the size %" PRId64 " is more than a kernel can index (2^31)", value);
  return value;
}

int64_t Launch::place(SymInt place) const {
  return std::clamp(graph.impl().size(place), -kElements, kElements);
}

}  // namespace pumice::engine
