// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk. Whatever is wrong with the file or its folder costs one warning and a rebuild, never a
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vulkan/physical.h"

namespace pumice::engine {

// What a cache file begins with, little-endian; the driver's bytes follow.
struct PipelineCacheHeader {
  char magic[4];     // "PMPC"
  uint32_t version;  // kPipelineCacheVersion
  uint32_t vendor_id, device_id, driver_version;
  uint8_t uuid[16];   // VkPhysicalDeviceProperties::pipelineCacheUUID
  uint32_t reserved;  // 0
  uint64_t body_bytes;
  uint64_t body_hash;  // XXH3-64
};
static_assert(sizeof(PipelineCacheHeader) == 56);
inline constexpr uint32_t kPipelineCacheVersion = 1;
inline constexpr uint64_t kMaxPipelineCacheBytes = 256ull << 20;

class PipelineCacheFile {
 public:
  // `cache_dir` as in DeviceOptions.
  PipelineCacheFile(const Physical& physical, const std::string& cache_dir);
  // The driver's bytes, or none.
  std::vector<uint8_t> load() noexcept;
  // Under a temporary name, synced, then renamed: a reader sees the old file or the new one.
  void save(const std::vector<uint8_t>& body) noexcept;
  const std::string& path() const { return path_; }  // "": caching is off

 private:
  bool open_folder(bool create);
  void warn(const std::string& text) noexcept;

  PipelineCacheHeader expected_{};
  std::string folder_, name_, path_;
  bool warned_ = false;
};

}  // namespace pumice::engine
