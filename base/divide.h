// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pumice::engine {

// a / b rounded up; a >= 0, b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace pumice::engine
