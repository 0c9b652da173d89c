// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .npy file: an exception with a text, or an array whose sizes fit its data.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "tools/pumice-rt/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/tmp/pumice-fuzz-" + std::to_string(getpid()) + ".npy";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const tool::Array array = tool::read_npy(path);
    uint64_t bytes = tool::dtype_bytes(array.dtype);
    for (const int64_t dim : array.dims) bytes *= static_cast<uint64_t>(dim);
    if (bytes != array.data.size() || bytes > size) std::abort();
    tool::write_npy(path, array);
    const tool::Array again = tool::read_npy(path);
    if (again.dims != array.dims || again.dtype != array.dtype || again.data != array.data) std::abort();
  } catch (const std::runtime_error&) {
  }
  return 0;
}
