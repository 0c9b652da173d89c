// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_impl.h"

#include <cinttypes>

#include "base/checked.h"
#include "graph/deferred.h"

namespace pumice::engine {

int64_t Graph::Impl::size(SymInt size) const {
  if (!size.is_expr) return size.value;
  if (launching != nullptr) launching->used_exprs.push_back(static_cast<uint32_t>(size.value));
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

bool Graph::Impl::is_in_place(uint32_t id) const {
  return tensors[id].in_place && bytes(id) == bytes(tensors[id].base);
}

// Chains of nodes in place may be long and asked for often. All after a base is inferred, so what was found there once
// is kept; `id` itself may still be resized.
uint32_t Graph::Impl::memory_root(uint32_t id) const {
  const auto has_base = [&](uint32_t t) {
    return tensors[t].base != kNone && (!tensors[t].in_place || is_in_place(t));
  };
  if (!has_base(id)) return id;
  nearer_root.resize(tensors.size(), kNone);
  const uint32_t first = tensors[id].base;
  uint32_t root = first;
  while (nearer_root[root] != kNone || has_base(root))
    root = nearer_root[root] != kNone ? nearer_root[root] : tensors[root].base;
  for (uint32_t t = first; t != root;) {
    const uint32_t next = nearer_root[t] != kNone ? nearer_root[t] : tensors[t].base;
    nearer_root[t] = root;
    t = next;
  }
  return root;
}

uint64_t Graph::Impl::bytes(uint32_t id) const {
  const TensorInfo& tensor = tensors[id];
  if (tensor.dtype == DType::i4) return file_bytes(tensor.dtype, tensor.shape);
  // An empty tensor is held to the limit, too, without its sizes of 0: strides are products of the others.
  CheckedU64 count = 1;
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    empty |= size == 0;
    count = count * (size == 0 ? 1 : static_cast<uint64_t>(size));
  }
  // Kernels count elements in 32 bits and add small numbers to a count; with kMax this cannot overflow.
  constexpr uint64_t kMax = uint64_t{1} << 31;
  const auto value = count.value();
  if (!value || *value >= kMax)
    fail(Code::LimitExceeded, Stage::plan,
         tensor.value == kNone ? "" : format("methods[%u].values[%u]", method_index, tensor.value),
         "a tensor has %" PRIu64 " elements or more, the limit is 2^31", kMax);
  return empty ? 0 : *value * device_bytes(tensor.dtype);
}

uint64_t Graph::Impl::counters_begin(uint32_t id) const {
  constexpr uint64_t kAlignment = 256;  // no device asks for a larger one
  uint64_t begin = 0;
  for (const uint32_t each : counters) {
    if (each == id) break;
    begin += (bytes(each) + kAlignment - 1) / kAlignment * kAlignment;
  }
  return begin;
}

std::string Graph::Impl::path(uint32_t call_index) const {
  if (call_index == kNone) return format("methods[%u]", method_index);
  return format("methods[%u].ops[%u] (%s)", method_index, call_index, op_name(method().ops[call_index].op).c_str());
}

// A texture that the file has must not become a buffer without notice.
void Graph::Impl::check_storages() const {
  if (features.storage != StorageOverride::as_exported) return;
  for (uint32_t v = 0; v < method().values.size(); ++v) {
    const StorageType wanted = method().values[v].storage;
    if (wanted != StorageType::buffer && !tensors[v].as_texture)
      fail(Code::BadSchema, Stage::plan, format("methods[%u].values[%u].storage", method_index, v),
           "no operator that reads or writes the value takes a %s; export it as a buffer", name(wanted));
  }
}

void Graph::Impl::materialize(Tensor tensor) {
  finish_deferred(*this, tensor);
  const TensorInfo& info = tensors[tensor.id()];
  if (info.other_storage != kNone) finish_deferred(*this, Tensor(tensor.graph(), info.other_storage));
  const bool is_texture = info.storage == StorageType::texture3d;
  // A buffer without a texture is written by a node, or it is an input, a constant or a state.
  if (info.materialized || info.other_storage == kNone || (!is_texture && !tensors[info.other_storage].materialized))
    return;
  copying = true;
  copy_storage(*tensor.graph(), tensor, Tensor(tensor.graph(), info.other_storage));
  copying = false;
}

std::string packed_key(const Graph::Impl& graph, const std::string& what, const std::vector<uint32_t>& inputs,
                       const TensorInfo& result, const std::function<std::string(uint32_t constant)>& constant) {
  const auto form = [](const TensorInfo& tensor) {
    std::string text = name(tensor.dtype);
    for (const int64_t size : tensor.shape) text += "," + std::to_string(size);
    return text;
  };
  std::string key = what + " " + name(result.storage) + " " + form(result);
  for (const uint32_t id : inputs) {
    const TensorInfo& root = graph.tensors[graph.view_root(id)];
    if (root.memory == MemorySource::packed) {
      const PackedConstant& packed = graph.packed_constants[root.ref];
      key += " (" + packed_key(graph, packed.what, packed.inputs, graph.tensors[packed.result], constant) + ")";
    } else {
      key += " " + constant(root.ref);
    }
    key += ":" + form(graph.tensors[id]);
  }
  return key;
}

}  // namespace pumice::engine
