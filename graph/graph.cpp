// SPDX-License-Identifier: Apache-2.0
// What operators call while they are built and while they launch.
#include "graph/graph.h"

#include <algorithm>
#include <cinttypes>

#include "base/checked.h"
#include "graph/build.h"

namespace pumice::engine {
namespace {

std::vector<uint32_t> ids(const std::vector<Tensor>& tensors) {
  std::vector<uint32_t> result;
  for (const Tensor& tensor : tensors) result.push_back(tensor ? tensor.id() : kNone);
  return result;
}

[[noreturn]] void bug(const Graph::Impl& graph, const char* what) {
  fail(Code::Internal, Stage::plan, graph.path(graph.call), "the operator %s", what);
}

// Kernels write what this call owns: its outputs and its temporaries.
void check_writes(const Graph::Impl& graph, const std::vector<uint32_t>& writes) {
  if (writes.empty()) bug(graph, "writes nothing");
  if (graph.copying) return;
  for (const uint32_t id : writes) {
    if (id == kNone) bug(graph, "writes an empty tensor");
    const TensorInfo& tensor = graph.tensors[id];
    const bool fresh = tensor.home == Home::status || (tensor.home == Home::arena && tensor.base == kNone);
    const auto& outputs = graph.method().ops[graph.call].outputs;
    const bool own = tensor.value == kNone || std::find(outputs.begin(), outputs.end(), tensor.value) != outputs.end();
    if (!fresh || !own) bug(graph, "writes a tensor that is not its own");
  }
}

void add_dispatch(Graph::Impl& graph, const std::vector<Tensor>& writes, const std::vector<Tensor>& reads,
                  LaunchFunction&& launch, bool in_place) {
  Node node{
      .kind = NodeKind::dispatch, .in_place = in_place, .call = graph.call, .writes = ids(writes), .reads = ids(reads)};
  check_writes(graph, node.writes);
  if (in_place && node.reads.empty()) bug(graph, "works in place on nothing");
  node.launch = std::move(launch);
  for (const Tensor& read : reads) {
    if (read) graph.hold(read);
  }
  for (const uint32_t id : node.writes) graph.tensors[id].held = true;
  graph.nodes.push_back(std::move(node));
}

}  // namespace

Graph::Graph() : impl_(std::make_unique<Impl>()) {}
Graph::~Graph() = default;

void Graph::dispatch(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch) {
  add_dispatch(*impl_, writes, reads, std::move(launch), false);
}

void Graph::dispatch_in_place(std::vector<Tensor> writes, std::vector<Tensor> reads, LaunchFunction launch) {
  add_dispatch(*impl_, writes, reads, std::move(launch), true);
}

bool Graph::shares(Tensor a, Tensor b) const {
  if (Node* node = impl_->asking) node->used_tensors.insert(node->used_tensors.end(), {a.id(), b.id()});
  if (impl_->tensors[a.id()].base == b.id() && impl_->granted(a.id())) return true;
  return impl_->storage(a.id()) == impl_->storage(b.id());
}

void Graph::view(Tensor out, Tensor in, ShapeFunction shape) {
  Node node{.kind = NodeKind::view, .call = impl_->call, .writes = ids({out}), .reads = ids({in})};
  check_writes(*impl_, node.writes);
  if (!in || device_bytes(out.dtype()) != device_bytes(in.dtype())) bug(*impl_, "views elements of another size");
  node.shape = std::move(shape);
  impl_->hold(in);
  impl_->tensors[out.id()].held = true;
  impl_->tensors[out.id()].base = impl_->view_root(in.id());  // never a chain
  impl_->nodes.push_back(std::move(node));
}

std::string pack_key(const Graph::Impl& graph, const std::string& what, const std::vector<uint32_t>& inputs,
                     const TensorInfo& result, const std::function<std::string(uint32_t constant)>& constant) {
  const auto form = [](const TensorInfo& tensor) {
    std::string text = name(tensor.dtype);
    for (const int64_t size : tensor.shape) text += "," + std::to_string(size);
    return text;
  };
  std::string key = what + " " + name(result.storage) + " " + form(result);
  for (const uint32_t id : inputs) {
    const TensorInfo& root = graph.tensors[graph.view_root(id)];
    if (root.home == Home::packed) {
      const Pack& pack = graph.packs[root.ref];
      key += " (" + pack_key(graph, pack.what, pack.inputs, graph.tensors[pack.result], constant) + ")";
    } else {
      key += " " + constant(root.ref);
    }
    key += ":" + form(graph.tensors[id]);
  }
  return key;
}

Tensor Graph::prepack(const std::string& what, std::vector<Tensor> inputs, DType dtype, const Shape& shape,
                      LaunchFunction launch, StorageClass storage) {
  TensorInfo result{.dtype = dtype,
                    .rank = static_cast<uint32_t>(shape.size()),
                    .home = Home::packed,
                    .ref = static_cast<uint32_t>(impl_->packs.size()),
                    .storage = storage,
                    .shape = shape};
  Pack pack{.key = "",
            .what = what,
            .call = impl_->call,
            .inputs = ids(inputs),
            .result = kNone,
            .launch = std::move(launch)};
  for (const uint32_t id : pack.inputs) {
    if (id == kNone || !Tensor(this, id).is_constant())
      fail(Code::BadGraph, Stage::plan, impl_->path(impl_->call), "%s: the tensor must be a constant", what.c_str());
    impl_->tensors[id].as_texture |= storage == StorageClass::texture2d;
  }
  const auto number = [](uint32_t constant) { return std::to_string(constant); };
  std::string key = pack_key(*impl_, what, pack.inputs, result, number);
  const auto [known, fresh] = impl_->pack_index.try_emplace(key, static_cast<uint32_t>(impl_->packs.size()));
  if (!fresh) return Tensor(this, impl_->packs[known->second].result);
  pack.key = std::move(key);
  pack.result = impl_->add(std::move(result));
  impl_->bytes(pack.result);
  impl_->packs.push_back(std::move(pack));
  return Tensor(this, impl_->packs.back().result);
}

Tensor Graph::scratch(DType dtype, uint32_t rank) {
  device_bytes(dtype);
  return Tensor(this, impl_->add({.dtype = dtype, .rank = rank, .shape = Shape(rank, 0)}));
}

Tensor Graph::status() {
  if (impl_->status == kNone)
    impl_->status = impl_->add({.dtype = DType::i32, .rank = 1, .home = Home::status, .shape = {4}});
  return Tensor(this, impl_->status);
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
  const uint64_t total = count / size + (count % size != 0);
  const uint64_t rows = (total + features.max_groups[0] - 1) / features.max_groups[0];
  if (rows > features.max_groups[1] || count > UINT32_MAX)
    fail(Code::LimitExceeded, Stage::plan, "", "%" PRIu64 " invocations are more than one dispatch takes", count);
  // Equal rows, so that few groups have nothing to do.
  groups = {static_cast<uint32_t>(rows == 0 ? 0 : (total + rows - 1) / rows), static_cast<uint32_t>(rows), 1};
  if (spec.empty()) spec.push_back(size);
  spec[0] = size;
}

void Launch::next_dispatch() {
  Dispatch& dispatch = *this;
  dispatches.push_back(std::move(dispatch));
  dispatch = Dispatch{};
}

int64_t Launch::size(SymInt size) const {
  return graph.impl().size(size);
}

int64_t Graph::Impl::size(SymInt size) const {
  if (!size.is_expr) return size.value;
  if (asking != nullptr) asking->used_exprs.push_back(static_cast<uint32_t>(size.value));
  return exprs[static_cast<size_t>(size.value)];
}

uint32_t Graph::Impl::add(TensorInfo info) {
  tensors.push_back(std::move(info));
  return static_cast<uint32_t>(tensors.size() - 1);
}

uint32_t Graph::Impl::view_root(uint32_t id) const {
  while (tensors[id].base != kNone && !tensors[id].in_place) id = tensors[id].base;
  return id;
}

bool Graph::Impl::granted(uint32_t id) const {
  return tensors[id].in_place && bytes(id) == bytes(tensors[id].base);
}

uint32_t Graph::Impl::storage(uint32_t id) const {
  while (tensors[id].base != kNone && (!tensors[id].in_place || granted(id))) id = tensors[id].base;
  return id;
}

uint64_t Graph::Impl::bytes(uint32_t id) const {
  const TensorInfo& tensor = tensors[id];
  if (tensor.dtype == DType::i4) return file_bytes(tensor.dtype, tensor.shape);
  CheckedU64 bytes = device_bytes(tensor.dtype);
  for (const int64_t size : tensor.shape) bytes = bytes * static_cast<uint64_t>(size);
  // Kernels count elements in 32 bits, and add a few; kMax is far from both.
  constexpr uint64_t kMax = uint64_t{1} << 31;
  const auto value = bytes.value();
  if (!value || *value / device_bytes(tensor.dtype) >= kMax)
    fail(Code::LimitExceeded, Stage::plan,
         tensor.value == kNone ? "" : format("methods[%u].values[%u]", method_index, tensor.value),
         "a tensor has %" PRIu64 " elements or more, the limit is 2^31", kMax);
  return *value;
}

std::string Graph::Impl::path(uint32_t call_index) const {
  if (call_index == kNone) return format("methods[%u]", method_index);
  return format("methods[%u].ops[%u] (%s)", method_index, call_index, op_name(method().ops[call_index].op).c_str());
}

}  // namespace pumice::engine
