// SPDX-License-Identifier: Apache-2.0
// The pipeline cache on disk. Any problem with the file or its folder is one warning and a rebuild, never a failed run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/siphash.h"
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
  uint64_t seal;  // SipHash-2-4 of all that is before it and of the body, with the key beside the file
};
static_assert(sizeof(PipelineCacheHeader) == 56);
inline constexpr uint32_t kPipelineCacheVersion = 2;
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
  bool read_key();
  bool make_key();
  bool write_new(const std::string& temporary, const void* header, size_t header_bytes, const void* body, size_t bytes);
  void remove_leftovers();
  uint64_t seal(const PipelineCacheHeader& header, const std::vector<uint8_t>& body) const;
  void warn(const std::string& text) noexcept;

  PipelineCacheHeader expected_{};
  std::string folder_, name_, path_;
  SipKey key_{};  // of the user: a file "key" in the folder that nobody else can read or replace
  bool warned_ = false;
};

}  // namespace pumice::engine
