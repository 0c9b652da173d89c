// SPDX-License-Identifier: Apache-2.0
#include "tools/pumice-rt/largest.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tool {
namespace {

bool is_finite(float value) {
  return std::isfinite(value);
}
bool is_finite(uint16_t bits) {
  return (bits & 0x7c00u) != 0x7c00u;
}

float rank(float value) {
  return value;
}
// fp16 numbers compare as their bits do, once those of negative ones are turned round.
int32_t rank(uint16_t bits) {
  const auto size = static_cast<int32_t>(bits & 0x7fffu);
  return (bits & 0x8000u) != 0 ? -size : size;
}

template <class T>
int64_t largest_of(const std::vector<T>& logits) {
  if (!std::all_of(logits.begin(), logits.end(), [](T value) { return is_finite(value); }))
    throw std::runtime_error("the logits are not finite: the model overflows in its dtype");
  return std::max_element(logits.begin(), logits.end(), [](T a, T b) { return rank(a) < rank(b); }) - logits.begin();
}

}  // namespace

int64_t largest(const std::vector<float>& logits) {
  return largest_of(logits);
}

int64_t largest(const std::vector<uint16_t>& logits) {
  return largest_of(logits);
}

}  // namespace tool
