// SPDX-License-Identifier: Apache-2.0
// Values in two storages: who has the value, and the copies between.
#include "base/error.h"
#include "graph/build.h"

namespace pumice::engine {

bool Graph::in_texture(Tensor value) const {
  const TensorInfo& tensor = impl_->tensors[value.id()];
  if (impl_->features.storage != StorageChoice::as_exported) return impl_->features.storage == StorageChoice::textures;
  return tensor.value != kNone && impl_->method().values[tensor.value].storage != StorageClass::buffer;
}

Tensor Graph::texture_out(Tensor value) {
  TensorInfo& tensor = impl_->tensors[value.id()];
  if (tensor.twin == kNone) {
    const TensorInfo texture{.dtype = tensor.dtype,
                             .rank = tensor.rank,
                             .storage = StorageClass::texture3d,
                             .twin = value.id(),
                             .shape = tensor.shape};
    const uint32_t id = impl_->add(texture);  // which moves the others
    impl_->tensors[value.id()].twin = id;
    impl_->tensors[value.id()].as_texture = true;
  }
  return Tensor(this, impl_->tensors[value.id()].twin);
}

Tensor Graph::texture(Tensor value) {
  const Tensor result = texture_out(value);
  impl_->hold(result);
  return result;
}

// Else the file would say one thing and the device do another.
void Graph::Impl::check_storages() const {
  if (features.storage != StorageChoice::as_exported) return;
  for (uint32_t v = 0; v < method().values.size(); ++v) {
    const StorageClass asked = method().values[v].storage;
    if (asked != StorageClass::buffer && !tensors[v].as_texture)
      fail(Code::BadSchema, Stage::plan, format("methods[%u].values[%u].storage", method_index, v),
           "no operator that reads or writes the value takes a %s", name(asked));
  }
}

void Graph::Impl::hold(Tensor tensor) {
  write_late(tensor);
  const TensorInfo& info = tensors[tensor.id()];
  if (info.twin != kNone) write_late(Tensor(tensor.graph(), info.twin));
  const bool is_texture = info.storage == StorageClass::texture3d;
  // A buffer that no texture stands beside was written, or is an input, a constant or a state.
  if (info.held || info.twin == kNone || (!is_texture && !tensors[info.twin].held)) return;
  copying = true;
  copy_storage(*tensor.graph(), tensor, Tensor(tensor.graph(), info.twin));
  copying = false;
}

}  // namespace pumice::engine
