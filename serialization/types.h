// SPDX-License-Identifier: Apache-2.0
// Names and sizes of types, with checked results. Private to serialization/; program.h has the public part.
#pragma once

#include "base/checked.h"
#include "serialization/gates.h"

namespace pumice::engine {

const char* name(ArgKind kind);
CheckedU64 checked_elements(std::span<const int64_t> dims);
CheckedU64 checked_file_bytes(DType dtype, std::span<const int64_t> dims);
bool same_dims(const Value& a, const Value& b);   // written alike
std::string text(std::span<const int64_t> dims);  // "2, 3"

}  // namespace pumice::engine
