// SPDX-License-Identifier: Apache-2.0
// Gate 1: the 64 bytes at the start of a file. Private to serialization/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "serialization/limits.h"
#include "serialization/where.h"

namespace pumice::engine {

// In bytes; kAlignment is that of the constants section and of each constant.
inline constexpr uint64_t kHeaderSize = 64, kAlignment = 64;
inline constexpr uint32_t kVersion = 1;

// Offsets and sizes in bytes, from the start of the file.
struct Header {
  uint64_t program_offset, program_size, program_hash, constants_offset, constants_size;
};

// Checks everything but program_hash. Throws BadHeader, Truncated, UnsupportedVersion, ChecksumMismatch, LimitExceeded.
Header read_header(std::span<const std::byte> file, const Limits& limits);
// Throws ChecksumMismatch at the first byte of file[first, last) that is not zero; `what` names the place.
void check_zero(std::span<const std::byte> file, uint64_t first, uint64_t last, const Where& what);

}  // namespace pumice::engine
