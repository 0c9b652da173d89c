// SPDX-License-Identifier: Apache-2.0
// What may be known of a constant's values while the graph is built.
#include <algorithm>

#include "graph/build.h"

namespace pumice::engine {

bool Graph::Impl::has_bytes(uint32_t constant) const {
  return !program->constants[constant].external || facts->external;
}

std::span<const std::byte> Graph::Impl::bytes_of(uint32_t constant) const {
  return constant_bytes(*program, constant, facts->external);
}

bool Graph::is_zero(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  if (tensor.home != Home::constant) return false;
  auto& facts = impl_->facts->is_zero;
  if (const auto known = facts.find(tensor.ref); known != facts.end()) return known->second;
  bool zero = false;
  if (impl_->has_bytes(tensor.ref)) {
    const std::span<const std::byte> bytes = impl_->bytes_of(tensor.ref);
    zero = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
  facts.emplace(tensor.ref, zero);
  return zero;
}

std::optional<Graph::Exponents> Graph::half_exponents(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  if (tensor.home != Home::constant || tensor.dtype != DType::f16) return std::nullopt;
  auto& facts = impl_->facts->half_exponents;
  if (const auto known = facts.find(tensor.ref); known != facts.end()) return known->second;
  std::optional<Exponents> result;
  if (impl_->has_bytes(tensor.ref)) {
    const std::span<const std::byte> bytes = impl_->bytes_of(tensor.ref);
    uint16_t low = 0x7fff, high = 0;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      const auto magnitude = static_cast<uint16_t>((std::to_integer<uint32_t>(bytes[i + 1]) & 0x7f) << 8 |
                                                   std::to_integer<uint32_t>(bytes[i]));
      low = std::min(low, magnitude);
      high = std::max(high, magnitude);
    }
    if (low >= 0x0400 && high < 0x7c00) result = {(low >> 10) - 15, (high >> 10) - 15};
  }
  facts.emplace(tensor.ref, result);
  return result;
}

std::optional<Graph::Scale> Graph::bad_scale(Tensor constant) const {
  const TensorInfo& tensor = impl_->tensors[impl_->view_root(constant.id())];
  if (tensor.home != Home::constant || (tensor.dtype != DType::f16 && tensor.dtype != DType::f32)) return std::nullopt;
  auto& facts = impl_->facts->bad_scale;
  if (const auto known = facts.find(tensor.ref); known != facts.end()) return known->second;
  std::optional<Scale> result;
  if (impl_->has_bytes(tensor.ref)) {
    const std::span<const std::byte> bytes = impl_->bytes_of(tensor.ref);
    const bool half = tensor.dtype == DType::f16;
    const size_t size = half ? 2 : 4;
    const uint32_t sign = half ? 0x8000u : 0x80000000u, infinity = half ? 0x7c00u : 0x7f800000u;
    for (size_t i = 0; i < bytes.size() / size && !result; ++i) {
      uint32_t bits = 0;
      for (size_t b = 0; b < size; ++b) bits |= std::to_integer<uint32_t>(bytes[i * size + b]) << (8 * b);
      // Good: 0, -0, and what is below infinity with no sign.
      if (bits >= infinity && bits != sign) result = {i, bits};
    }
  }
  facts.emplace(tensor.ref, result);
  return result;
}

}  // namespace pumice::engine
