// SPDX-License-Identifier: Apache-2.0
#include "graph/convert.h"

#include <cstring>

namespace pumice::engine {

int64_t read_i64(const std::byte* in, uint64_t position) {
  int64_t value;
  std::memcpy(&value, in + position * 8, 8);
  return value;
}

uint64_t narrow_i64(std::byte* out, const std::byte* in, uint64_t count) {
  bool fits = true;
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t value = read_i64(in, i);
    const int32_t narrow = static_cast<int32_t>(value);
    fits &= narrow == value;
    std::memcpy(out + i * 4, &narrow, 4);
  }
  if (fits) return kNoPosition;
  // Once more, since another thread may have changed the input: what is copied now is what is looked at.
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t value = read_i64(in, i);
    const int32_t narrow = static_cast<int32_t>(value);
    std::memcpy(out + i * 4, &narrow, 4);
    if (narrow != value) return i;
  }
  return kNoPosition;
}

uint64_t copy_bool(std::byte* out, const std::byte* in, uint64_t count) {
  std::byte all{0};
  for (uint64_t i = 0; i < count; ++i) {
    all |= in[i];
    out[i] = in[i];
  }
  if ((all & ~std::byte{1}) == std::byte{0}) return kNoPosition;
  for (uint64_t i = 0; i < count; ++i) {  // as above
    const std::byte value = in[i];
    out[i] = value;
    if ((value & ~std::byte{1}) != std::byte{0}) return i;
  }
  return kNoPosition;
}

void widen_i32(std::byte* out, const std::byte* in, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    int32_t narrow;
    std::memcpy(&narrow, in + i * 4, 4);
    const int64_t value = narrow;
    std::memcpy(out + i * 8, &value, 8);
  }
}

}  // namespace pumice::engine
