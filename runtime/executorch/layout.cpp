// SPDX-License-Identifier: Apache-2.0
#include "runtime/executorch/layout.h"

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <array>

#include "pumice/pumice.h"

namespace pumice::et {

using executorch::aten::SizesType;
using executorch::aten::StridesType;
using executorch::aten::Tensor;

namespace {

using Strides = std::array<StridesType, PUMICE_MAX_RANK>;

// Elements of T, of which strides count.
template <class T>
void copy(const T* in, const StridesType* in_strides, T* out, const StridesType* out_strides, const SizesType* sizes,
          ssize_t rank) {
  if (rank == 0) {
    *out = *in;
    return;
  }
  for (SizesType i = 0; i < *sizes; ++i) {
    copy(in + ptrdiff_t{i} * *in_strides, in_strides + 1, out + ptrdiff_t{i} * *out_strides, out_strides + 1, sizes + 1,
         rank - 1);
  }
}

Strides usual_strides(const Tensor& tensor) {
  Strides strides{};
  StridesType step = 1;
  for (ssize_t d = tensor.dim(); d-- > 0;) {
    strides[static_cast<size_t>(d)] = step;
    step *= static_cast<StridesType>(tensor.size(d));
  }
  return strides;
}

// Calls `body` with a null pointer to an integer as wide as an element.
template <class Body>
void with_width(const Tensor& tensor, const Body& body) {
  switch (tensor.element_size()) {
    case 1:
      return body(static_cast<uint8_t*>(nullptr));
    case 2:
      return body(static_cast<uint16_t*>(nullptr));
    case 4:
      return body(static_cast<uint32_t*>(nullptr));
    default:
      return body(static_cast<uint64_t*>(nullptr));
  }
}

}  // namespace

bool has_usual_order(const Tensor& tensor) {
  return executorch::runtime::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size());
}

void copy_out(const Tensor& tensor, std::byte* bytes) {
  const Strides strides = usual_strides(tensor);
  with_width(tensor, [&]<class T>(T*) {
    copy(static_cast<const T*>(tensor.const_data_ptr()), tensor.strides().data(), reinterpret_cast<T*>(bytes),
         strides.data(), tensor.sizes().data(), tensor.dim());
  });
}

void copy_in(const std::byte* bytes, Tensor& tensor) {
  const Strides strides = usual_strides(tensor);
  with_width(tensor, [&]<class T>(T*) {
    copy(reinterpret_cast<const T*>(bytes), strides.data(), static_cast<T*>(tensor.mutable_data_ptr()),
         tensor.strides().data(), tensor.sizes().data(), tensor.dim());
  });
}

}  // namespace pumice::et
