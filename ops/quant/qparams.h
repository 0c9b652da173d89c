// SPDX-License-Identifier: Apache-2.0
// Arguments of operators on 8-bit integers: a scale and a zero point as numbers.
#pragma once

#include <cinttypes>
#include <cmath>

#include "ops/shared/args.h"

namespace pumice::engine {

inline bool is_byte(DType dtype) {
  return dtype == DType::i8 || dtype == DType::u8;
}
// The least integer of a byte dtype; the largest is 255 more.
inline int64_t least(DType dtype) {
  return dtype == DType::u8 ? 0 : -128;
}

inline double scale_at(const Args& args, uint32_t index, const char* op) {
  const double scale = args.real(index);
  const auto stored = static_cast<float>(scale);
  check(stored > 0 && std::isfinite(stored), "%s: the scale %g is not positive", op, scale);
  return scale;
}

inline int64_t zero_at(const Args& args, uint32_t index, int64_t low, int64_t high, const char* op) {
  const int64_t zero = args.integer(index);
  check(zero >= low && zero <= high, "%s: the zero point %" PRId64 " is not in %" PRId64 "..%" PRId64, op, zero, low,
        high);
  return zero;
}

}  // namespace pumice::engine
