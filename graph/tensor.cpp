// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor.h"

#include <cinttypes>

#include "base/checked.h"
#include "graph/build.h"

namespace pumice::engine {
namespace {

std::string text(const Shape& shape) {
  std::string result = "[";
  for (const int64_t size : shape) result += (result.size() > 1 ? ", " : "") + std::to_string(size);
  return result + "]";
}

TensorInfo& info(Graph* graph, uint32_t id) {
  if (graph == nullptr) fail(Code::Internal, Stage::plan, "", "an empty tensor was used");
  return graph->impl().tensors[id];
}

}  // namespace

uint32_t device_bytes(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
    case DType::i64:
      return 4;
    case DType::f16:
      return 2;
    case DType::boolean:
    case DType::u8:
    case DType::i8:
      return 1;
    case DType::i4:
      break;
  }
  fail(Code::BadDtype, Stage::plan, "", "%s has no element on the device", name(dtype));
}

uint64_t Tensor::bytes() const {
  info(graph_, id_);
  return graph_->impl().bytes(id_);
}

DType Tensor::dtype() const {
  return info(graph_, id_).dtype;
}
StorageClass Tensor::storage() const {
  return info(graph_, id_).storage;
}
uint32_t Tensor::rank() const {
  return info(graph_, id_).rank;
}

const Shape& Tensor::shape() const {
  const TensorInfo& tensor = info(graph_, id_);
  if (Node* node = graph_->impl().asking) node->used_tensors.push_back(id_);
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
         text(sizes).c_str());
  CheckedI64 count = 1;
  for (int64_t i = first_axis; i < last_axis; ++i) count = count * sizes[static_cast<size_t>(i)];
  if (!count.ok()) fail(Code::LimitExceeded, Stage::plan, "", "%s has more than 2^63 elements", text(sizes).c_str());
  return *count.value();
}

bool Tensor::is_constant() const {
  if (graph_ == nullptr) return false;
  const Home home = graph_->impl().tensors[graph_->impl().view_root(id_)].home;
  return home == Home::constant || home == Home::packed;
}

void Tensor::resize(const Shape& shape) const {
  TensorInfo& tensor = info(graph_, id_);
  if (tensor.storage == StorageClass::texture3d) Tensor(graph_, tensor.twin).resize(shape);
  if (tensor.declared || tensor.home != Home::arena) {
    if (shape == tensor.shape) return;
    const std::string path =
        tensor.value == kNone ? "" : format("methods[%u].values[%u]", graph_->impl().method_index, tensor.value);
    fail(Code::BadShape, Stage::plan, path, "the operator gives %s, the file says %s", text(shape).c_str(),
         text(tensor.shape).c_str());
  }
  if (shape.size() != tensor.rank)
    fail(Code::BadShape, Stage::plan, "", "%s for a temporary of rank %u", text(shape).c_str(), tensor.rank);
  for (const int64_t size : shape) {
    if (size < 0) fail(Code::BadShape, Stage::plan, "", "the operator gives the shape %s", text(shape).c_str());
  }
  tensor.changed = tensor.changed || shape != tensor.shape;
  tensor.shape = shape;
}

}  // namespace pumice::engine
