// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor.h"

#include <cinttypes>

#include "base/checked.h"
#include "graph/graph_impl.h"

namespace pumice::engine {
namespace {

std::string bracketed(const Shape& shape) {
  return "[" + text(shape) + "]";
}

TensorInfo& info(Graph* graph, uint32_t id) {
  if (graph == nullptr) fail(Code::Internal, Stage::plan, "", "an empty tensor was used");
  return graph->impl().tensors[id];
}

}  // namespace

uint64_t Tensor::bytes() const {
  info(graph_, id_);
  return graph_->impl().bytes(id_);
}

DType Tensor::dtype() const {
  return info(graph_, id_).dtype;
}
StorageType Tensor::storage() const {
  return info(graph_, id_).storage;
}
uint32_t Tensor::rank() const {
  return info(graph_, id_).rank;
}

const Shape& Tensor::shape() const {
  const TensorInfo& tensor = info(graph_, id_);
  if (Node* node = graph_->impl().launching) node->used_tensors.push_back(id_);
  return tensor.shape;
}

int64_t Tensor::dim(int64_t axis) const {
  const Shape& sizes = shape();
  const int64_t rank = static_cast<int64_t>(sizes.size());
  if (axis < -rank || axis >= rank)
    fail(Code::BadShape, Stage::plan, "", "dimension %" PRId64 " of a tensor of rank %" PRId64, axis, rank);
  return sizes[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
}

int64_t Tensor::numel() const {
  return numel(0, static_cast<int64_t>(shape().size()));
}

int64_t Tensor::numel(int64_t first_axis, int64_t last_axis) const {
  const Shape& sizes = shape();
  if (first_axis < 0 || last_axis < first_axis || last_axis > static_cast<int64_t>(sizes.size()))
    fail(Code::BadShape, Stage::plan, "", "axes %" PRId64 " to %" PRId64 " of %s", first_axis, last_axis,
         bracketed(sizes).c_str());
  CheckedI64 count = 1;
  for (int64_t i = first_axis; i < last_axis; ++i) count = count * sizes[static_cast<size_t>(i)];
  if (!count.ok())
    fail(Code::LimitExceeded, Stage::plan, "", "%s has more than 2^63 elements", bracketed(sizes).c_str());
  return *count.value();
}

bool Tensor::is_constant() const {
  // The first elements of a constant may be another number of them in each call.
  if (graph_ == nullptr || graph_->impl().tensors[id_].is_part) return false;
  const MemorySource memory = graph_->impl().tensors[graph_->impl().view_root(id_)].memory;
  return memory == MemorySource::constant || memory == MemorySource::packed;
}

void Tensor::resize(const Shape& shape) const {
  TensorInfo& tensor = info(graph_, id_);
  if (tensor.storage == StorageType::texture3d) Tensor(graph_, tensor.other_storage).resize(shape);
  if (tensor.declared || tensor.memory != MemorySource::arena) {
    if (shape == tensor.shape) return;
    const std::string path =
        tensor.value == kNone ? "" : format("methods[%u].values[%u]", graph_->impl().method_index, tensor.value);
    fail(Code::BadShape, Stage::plan, path, "the operator gives %s, the file says %s", bracketed(shape).c_str(),
         bracketed(tensor.shape).c_str());
  }
  if (shape.size() != tensor.rank)
    fail(Code::BadShape, Stage::plan, "", "%s for a temporary of rank %u", bracketed(shape).c_str(), tensor.rank);
  for (const int64_t size : shape) {
    if (size < 0) fail(Code::BadShape, Stage::plan, "", "the operator gives the shape %s", bracketed(shape).c_str());
  }
  tensor.changed = tensor.changed || shape != tensor.shape;
  tensor.shape = shape;
  graph_->impl().bytes(id_);  // within limits, before the launch computes with its sizes
}

}  // namespace pumice::engine
