// SPDX-License-Identifier: Apache-2.0
// A float of 16 bits for inputs and outputs of fp16 models: pumice::view<pumice::Half>, Output::values<pumice::Half>.
#pragma once

#include <bit>
#include <cstdint>

namespace pumice {
inline namespace api {

// IEEE 754 binary16, as PUMICE_F16 has it in memory. Compilers with _Float16 may give memory of that type instead.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  // Rounded to nearest, ties to even; beyond 65519.99 infinity. A NaN stays one.
  explicit Half(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value), sign = all >> 16 & 0x8000, magnitude = all & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      bits = static_cast<uint16_t>(sign | 0x7e00);
    } else if (magnitude >= 0x477ff000) {  // 65520 and more
      bits = static_cast<uint16_t>(sign | 0x7c00);
    } else if (magnitude < 0x38800000) {                         // below 2^-14: a multiple of 2^-24, rounded by the sum
      const float sum = std::bit_cast<float>(magnitude) + 0.5f;  // 2^-24 is the last bit of 0.5
      bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3f000000));
    } else {
      bits = static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
    }
  }
  explicit operator float() const {
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    const float value = static_cast<float>(magnitude & 0x3ff) * 0x1p-24f;
    if (magnitude < 0x400) return sign ? -value : value;
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  }
};
static_assert(sizeof(Half) == 2);

}  // namespace api
}  // namespace pumice
