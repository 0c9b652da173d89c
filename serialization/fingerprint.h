// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pumice::engine {

// Two contents have the same one by a chance of 2^-128. It is made with a secret of this process: a file cannot bring
// contents that are taken for others.
std::array<uint64_t, 2> fingerprint(std::span<const std::byte> bytes);

}  // namespace pumice::engine
