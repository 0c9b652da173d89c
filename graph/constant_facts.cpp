// SPDX-License-Identifier: Apache-2.0
#include "graph/constant_facts.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace pumice::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "constants are read in place");

// The scales of a model of 8 billion weights are half a gigabyte: these loops are written so that compilers use
// vectors.
template <class Word>
Word word(std::span<const std::byte> bytes, size_t i) {
  Word value;
  std::memcpy(&value, bytes.data() + i * sizeof(Word), sizeof(Word));
  return value;
}

// The first that is not 0, -0, or a number above 0 and below `infinity`.
template <class Word>
std::optional<Graph::Scale> first_bad(std::span<const std::byte> bytes, Word infinity) {
  constexpr size_t kPiece = 4096;
  constexpr Word kMinusZero = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  const auto is_bad = [&](size_t i) {
    const Word bits = word<Word>(bytes, i);
    return bits >= infinity && bits != kMinusZero;
  };
  const size_t count = bytes.size() / sizeof(Word);
  for (size_t begin = 0; begin < count; begin += kPiece) {
    const size_t end = std::min(begin + kPiece, count);
    Word bad = 0;
    for (size_t i = begin; i < end; ++i) bad = static_cast<Word>(bad | Word{is_bad(i)});
    if (bad == 0) continue;
    for (size_t i = begin; i < end; ++i)
      if (is_bad(i)) return Graph::Scale{i, word<Word>(bytes, i)};
  }
  return std::nullopt;
}

}  // namespace

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
    int16_t low = 0x7fff, high = 0;  // signed: every x86-64 has minima of vectors of these
    for (size_t i = 0; i < bytes.size() / 2; ++i) {
      const auto magnitude = static_cast<int16_t>(word<uint16_t>(bytes, i) & 0x7fff);
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
    result = dtype == DType::f16 ? first_bad<uint16_t>(bytes, 0x7c00) : first_bad<uint32_t>(bytes, 0x7f800000);
  }
  scales_.emplace(index, result);
  return result;
}

}  // namespace pumice::engine
