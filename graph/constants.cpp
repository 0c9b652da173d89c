// SPDX-License-Identifier: Apache-2.0
// What may be known of a constant's values while the graph is built.
#include <algorithm>

#include "graph/build.h"

namespace pumice {

bool Graph::is_zero(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  if (tensor.home != Home::constant) return false;
  auto& facts = impl_->facts->is_zero;
  if (const auto known = facts.find(tensor.ref); known != facts.end()) return known->second;
  bool zero = false;
  if (!impl_->program->constants[tensor.ref].external) {
    const std::span<const std::byte> bytes = constant_bytes(*impl_->program, tensor.ref, {});
    zero = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
  facts.emplace(tensor.ref, zero);
  return zero;
}

}  // namespace pumice
