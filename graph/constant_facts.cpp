// SPDX-License-Identifier: Apache-2.0
#include "graph/constant_facts.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

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

// The first in bytes that is not 0, -0, or a number above 0 and below `infinity`; the number of words where there is
// none.
template <class Word>
size_t first_bad(std::span<const std::byte> bytes, Word infinity) {
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
      if (is_bad(i)) return i;
  }
  return count;
}

}  // namespace

bool ConstantFacts::has_bytes(const Program& program, uint32_t index) const {
  return !program.constants[index].external || external;
}

void ConstantFacts::over_pieces(size_t bytes, const std::function<void(size_t first, size_t count)>& work) {
  constexpr size_t kPiece = size_t{256} << 10;  // 10 us or more of one core: ten times what a thread takes to get it
  if (bytes > kPiece && !pool_) pool_ = std::make_unique<ThreadPool>(threads_);
  if (pool_) return pool_->run(bytes, kPiece, work);
  if (bytes > 0) work(0, bytes);
}

bool ConstantFacts::is_zero(const Program& program, uint32_t index) {
  const std::lock_guard guard(mutex_);
  if (const auto known = zeros_.find(index); known != zeros_.end()) return known->second;
  bool zero = false;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    std::atomic<bool> seen{false};
    over_pieces(bytes.size(), [&](size_t first, size_t count) {
      std::byte any{0};
      if (!seen.load(std::memory_order_relaxed))
        for (const std::byte b : bytes.subspan(first, count)) any |= b;
      if (any != std::byte{0}) seen = true;
    });
    zero = !seen;
  }
  zeros_.emplace(index, zero);
  return zero;
}

std::optional<Graph::Exponents> ConstantFacts::half_exponents(const Program& program, uint32_t index) {
  const std::lock_guard guard(mutex_);
  if (const auto known = exponents_.find(index); known != exponents_.end()) return known->second;
  std::optional<Graph::Exponents> result;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    std::mutex mutex;
    int16_t low = 0x7fff, high = 0;  // signed: every x86-64 has minima of vectors of these
    over_pieces(bytes.size(), [&](size_t first, size_t count) {
      const std::span<const std::byte> piece = bytes.subspan(first, count);
      int16_t least = 0x7fff, most = 0;
      for (size_t i = 0; i < count / 2; ++i) {
        const auto magnitude = static_cast<int16_t>(word<uint16_t>(piece, i) & 0x7fff);
        least = std::min(least, magnitude);
        most = std::max(most, magnitude);
      }
      const std::lock_guard lock(mutex);
      low = std::min(low, least);
      high = std::max(high, most);
    });
    if (low >= 0x0400 && high < 0x7c00) result = {(low >> 10) - 15, (high >> 10) - 15};
  }
  exponents_.emplace(index, result);
  return result;
}

std::optional<Graph::Scale> ConstantFacts::bad_scale(const Program& program, uint32_t index, DType dtype) {
  const std::lock_guard guard(mutex_);
  if (const auto known = scales_.find(index); known != scales_.end()) return known->second;
  std::optional<Graph::Scale> result;
  if (has_bytes(program, index)) {
    const std::span<const std::byte> bytes = constant_bytes(program, index, external);
    const bool half = dtype == DType::f16;
    const size_t size = half ? 2 : 4;
    std::atomic<size_t> least{SIZE_MAX};
    over_pieces(bytes.size(), [&](size_t first, size_t count) {
      if (first / size > least) return;  // bytes after a bad scale need no check
      const std::span<const std::byte> piece = bytes.subspan(first, count);
      const size_t found = half ? first_bad<uint16_t>(piece, 0x7c00) : first_bad<uint32_t>(piece, 0x7f800000);
      if (found < count / size) lower_to(least, first / size + found);
    });
    if (least != SIZE_MAX)
      result = Graph::Scale{least, half ? word<uint16_t>(bytes, least) : word<uint32_t>(bytes, least)};
  }
  scales_.emplace(index, result);
  return result;
}

}  // namespace pumice::engine
