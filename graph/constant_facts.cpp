// SPDX-License-Identifier: Apache-2.0
#include "graph/constant_facts.h"

#include <algorithm>

namespace pumice::engine {

bool ConstantFacts::has_bytes(const Program& program, uint32_t index) const {
  return !program.constants[index].external || external;
}

bool ConstantFacts::is_zero(const Program& program, uint32_t index) {
  if (const auto known = zeros_.find(index); known != zeros_.end()) return known->second;
  bool zero = false;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    zero = std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
  zeros_.emplace(index, zero);
  return zero;
}

std::optional<Graph::Exponents> ConstantFacts::half_exponents(const Program& program, uint32_t index) {
  if (const auto known = exponents_.find(index); known != exponents_.end()) return known->second;
  std::optional<Graph::Exponents> result;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    uint16_t low = 0x7fff, high = 0;
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      const auto magnitude = static_cast<uint16_t>((std::to_integer<uint32_t>(bytes[i + 1]) & 0x7f) << 8 |
                                                   std::to_integer<uint32_t>(bytes[i]));
      low = std::min(low, magnitude);
      high = std::max(high, magnitude);
    }
    if (low >= 0x0400 && high < 0x7c00) result = {(low >> 10) - 15, (high >> 10) - 15};
  }
  exponents_.emplace(index, result);
  return result;
}

std::optional<Graph::Scale> ConstantFacts::bad_scale(const Program& program, uint32_t index, DType dtype) {
  if (const auto known = scales_.find(index); known != scales_.end()) return known->second;
  std::optional<Graph::Scale> result;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    const bool half = dtype == DType::f16;
    const size_t size = half ? 2 : 4;
    const uint32_t sign = half ? 0x8000u : 0x80000000u, infinity = half ? 0x7c00u : 0x7f800000u;
    for (size_t i = 0; i < bytes.size() / size && !result; ++i) {
      uint32_t bits = 0;
      for (size_t b = 0; b < size; ++b) bits |= std::to_integer<uint32_t>(bytes[i * size + b]) << (8 * b);
      // Good: 0, -0, and what is below infinity with no sign.
      if (bits >= infinity && bits != sign) result = {i, bits};
    }
  }
  scales_.emplace(index, result);
  return result;
}

}  // namespace pumice::engine
