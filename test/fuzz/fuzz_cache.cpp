// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a pipeline cache: the driver gets only what this user wrote, whole. And as a table of tuned
// kernels: what is read of one is all there is in its text.
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/log.h"
#include "vulkan/cache_file.h"
#include "vulkan/tuned_kernels.h"

using namespace pumice::engine;  // NOLINT: the function below is C

namespace {

Physical some_device() {
  Physical physical;
  physical.info.vendor_id = 0x10de;
  physical.info.device_id = 0x2335;
  return physical;
}

std::string folder() {
  std::string pattern = "/tmp/pumice-fuzz-XXXXXX";
  set_log([](LogLevel, const std::string&) {}, LogLevel::error);
  return mkdtemp(pattern.data());
}

std::vector<uint8_t> load(const std::string& where) {
  return CacheFile(kPipelineCache, some_device(), where).load();
}

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A header that was right for these bytes, with its key: what one process wrote.
std::vector<uint8_t> sealed(const std::string& where, const std::vector<uint8_t>& body) {
  CacheFile file(kPipelineCache, some_device(), where);
  file.save(body);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = folder();
  static const std::vector<uint8_t> first = sealed(where, {1, 2, 3, 4, 5, 6, 7, 8});
  static const std::string path = CacheFile(kPipelineCache, some_device(), where).path();
  const std::vector<uint8_t> bytes(data, data + size);
  write(path, bytes);
  if (!load(where).empty() && bytes != first) std::abort();
  std::vector<uint8_t> changed = first;  // the right file, with the bytes laid over it
  for (size_t i = 0; i < std::min(size, changed.size()); ++i) changed[i] ^= data[i];
  write(path, changed);
  if (!load(where).empty() != (changed == first)) std::abort();
  const auto tuned = TunedKernels::parse({reinterpret_cast<const char*>(data), size});
  if (tuned == nullptr) return 0;
  const auto again = TunedKernels::parse(tuned->text());
  if (again == nullptr || again->text() != tuned->text() || again->size() != tuned->size()) std::abort();
  tuned->find({reinterpret_cast<const char*>(data), size / 2}, static_cast<int64_t>(size));
  return 0;
}
