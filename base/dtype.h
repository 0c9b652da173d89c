// SPDX-License-Identifier: Apache-2.0
// Element types: their names, and the bytes of a tensor in a file and on the device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/checked.h"

namespace pumice::engine {

// The numbers are those of serialization/schema.fbs.
enum class DType : uint8_t { f32 = 0, f16 = 1, i32 = 2, i64 = 3, boolean = 4, u8 = 5, i8 = 6, i4 = 7 };

const char* name(DType dtype);  // "f32", "bool", ...

// Bytes of one element on the device: f32 4, f16 2, i32 and i64 4, bool, u8 and i8 1. Throws BadDtype for i4, which the
// device has only inside of packed constants.
uint32_t device_bytes(DType dtype);

// The number of elements; no value where a size is negative or the product does not fit 64 bits.
CheckedU64 checked_elements(std::span<const int64_t> dims);
// Bytes in a file: i64 has 8; i4 two elements a byte, and each row of the last dimension begins with a new byte.
CheckedU64 checked_file_bytes(DType dtype, std::span<const int64_t> dims);
// As checked_file_bytes; throws LimitExceeded where the bytes do not fit 64 bits.
uint64_t file_bytes(DType dtype, std::span<const int64_t> dims);

std::string text(std::span<const int64_t> dims);  // "2, 3"

}  // namespace pumice::engine
