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

// For `read`: every segment lies inside of the section, in order, with zeros between; with `verify_hashes`, also the
// hashes of their bytes.
void check_constants(const Program& program, bool verify_hashes);

}  // namespace pumice::engine
