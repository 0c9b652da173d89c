// SPDX-License-Identifier: Apache-2.0
// The only way to make a Program.
#pragma once

#include "serialization/limits.h"
#include "serialization/program.h"
#include "serialization/signature.h"

namespace pumice::engine {

// Gates 1 to 3: header, FlatBuffers verifier, semantics. `verify_hashes`: also the hash of every constant (at memory
// speed, on several threads); else the caller calls check_hashes(). The file's bytes may be unaligned; they must
// outlive Program::data.
Program read(std::span<const std::byte> file, std::span<const Signature> signatures, const Limits& limits = {},
             bool verify_hashes = true);

}  // namespace pumice::engine
