// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, version 1 and 2 headers, C order, little endian: what the tool reads and writes tensors as.
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

// Throw std::runtime_error that names the file and what is wrong with it.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace tool
