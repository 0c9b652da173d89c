// SPDX-License-Identifier: Apache-2.0
// The constants section: segments in order, zeros between, each with a hash of its own.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "serialization/program.h"

namespace pumice::engine {

// Returns the bytes of an external constant, or nothing when there is none under that key.
using ExternalData = std::function<std::optional<std::span<const std::byte>>(std::string_view key)>;

// The bytes of constant `index`, from the file or from `external`. Size and hash of external ones are checked: throws
// WeightsMismatch where they differ or are missing.
std::span<const std::byte> constant_bytes(const Program& program, uint32_t index, const ExternalData& external);

// For `read`: every segment lies inside of the section, in order, with zeros between.
void check_constants(const Program& program);
// Throws ChecksumMismatch where the bytes of a constant in the file have another hash than the file says.
void check_hashes(const Program& program);

}  // namespace pumice::engine
