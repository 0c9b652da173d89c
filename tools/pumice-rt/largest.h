// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tool {

// Where the largest of the logits of a token is, the first of equal ones; the second function: of fp16, as bits. Both
// throw std::runtime_error where one is not finite.
int64_t largest(const std::vector<float>& logits);
int64_t largest(const std::vector<uint16_t>& logits);

}  // namespace tool
