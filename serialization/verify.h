// SPDX-License-Identifier: Apache-2.0
// Gate 2: the FlatBuffers verifier with our limits. Private to serialization/.
#pragma once

#include <cstddef>
#include <span>

#include "serialization/limits.h"

namespace pumice::engine {

// `bytes` must be aligned to 8. Throws BadSchema or LimitExceeded with the path of the first bad field.
void verify(std::span<const std::byte> bytes, const Limits& limits);

}  // namespace pumice::engine
