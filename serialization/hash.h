// SPDX-License-Identifier: Apache-2.0
// Hashes of bytes: one that the file stores, and one for comparing contents inside of a process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pumice::engine {

// XXH3 with 64 bits, as the file has it for its header, its program and each constant.
uint64_t hash64(std::span<const std::byte> bytes);

// 128 bits. Different contents have equal fingerprints with a probability of 2^-128. It depends on a random secret of
// this process, so that a prepared file cannot pass its contents off as those of another.
std::array<uint64_t, 2> fingerprint(std::span<const std::byte> bytes);

}  // namespace pumice::engine
