// SPDX-License-Identifier: Apache-2.0
#include "serialization/text.h"

#include <cstddef>

namespace pumice::engine {
namespace {

// The bytes of the UTF-8 sequence that starts at text[at] (0: none does), and its code point.
size_t sequence(std::string_view text, size_t at, uint32_t& point) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t size = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (size == 0 || size > text.size() - at) return 0;
  point = size == 1 ? first : first & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if (byte >> 6 != 2) return 0;
    point = point << 6 | (byte & 0x3fu);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800,
                                    0x10000};  // a longer form than needed hides characters from checks
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return point < kSmallest[size] || point > 0x10ffff || surrogate ? 0 : size;
}

}  // namespace

const char* text_problem(std::string_view text, Lines lines) {
  for (size_t at = 0; at < text.size();) {
    uint32_t point = 0;
    const size_t size = sequence(text, at, point);
    if (size == 0) return "is not UTF-8";
    const bool space = point == '\n' || point == '\t';
    const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    if (control && !(space && lines == Lines::many)) return "has a control character";
    at += size;
  }
  return nullptr;
}

}  // namespace pumice::engine
