// SPDX-License-Identifier: Apache-2.0
// Reads and writes tensors as NumPy's .npy files: versions 1 and 2, C order, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pumice/pumice.h"

namespace tool {

struct Array {
  pumice_dtype dtype = PUMICE_F32;
  std::vector<int64_t> dims;
  std::vector<std::byte> data;
};

const char* dtype_name(pumice_dtype dtype);  // "float32", ...
uint64_t dtype_bytes(pumice_dtype dtype);

// Both throw std::runtime_error with the name of the file and the reason.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace tool
