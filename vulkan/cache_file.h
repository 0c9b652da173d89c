// SPDX-License-Identifier: Apache-2.0
// A file of the cache on disk: compiled pipelines, or tuned kernels. Any problem with it or its folder is one warning
// and a rebuild, never a failed run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "vulkan/physical.h"

namespace pumice::engine {

struct CacheKind {
  const char* what;  // in messages
  const char* stem;  // of the file's name
  char magic[5];
  uint32_t version;  // of what follows the header
  uint64_t most_bytes;
};
inline constexpr CacheKind kPipelineCache{"pipeline cache", "pipelines", "PMPC", 2, 256ull << 20};

// What a cache file begins with, little-endian; the content follows.
struct CacheHeader {
  char magic[4];
  uint32_t version;
  uint32_t vendor_id, device_id, driver_version;
  uint8_t uuid[16];   // VkPhysicalDeviceProperties::pipelineCacheUUID
  uint32_t reserved;  // 0
  uint64_t body_bytes;
  uint64_t seal;  // SipHash-2-4 of all that is before it and of the body, with the key beside the file
};
static_assert(sizeof(CacheHeader) == 56);

class CacheFile {
 public:
  // `cache_dir` as in DeviceOptions. `more`: of the file's name, where a device has several of the kind.
  CacheFile(const CacheKind& kind, const Physical& physical, const std::string& cache_dir,
            const std::string& more = "");
  // The content, or none.
  std::vector<uint8_t> load() noexcept;
  // Under a temporary name, synced, then renamed: a reader sees the old file or the new one. False: nothing was kept.
  bool save(const std::vector<uint8_t>& body) noexcept;
  // Tells of a problem with the content, once for all that load finds.
  void warn(const std::string& text) noexcept;
  const std::string& path() const { return path_; }  // "": caching is off

 private:
  bool open_folder(bool create);
  bool read_key();
  bool make_key();
  bool write_new(const std::string& temporary, const void* header, size_t header_bytes, const void* body, size_t bytes);
  void remove_leftovers();
  uint64_t seal(const CacheHeader& header, const std::vector<uint8_t>& body) const;

  CacheKind kind_;
  CacheHeader expected_{};
  std::string folder_, name_, path_;
  SipKey key_{};  // of the user: a file "key" in the folder that nobody else can read or replace
  bool warned_ = false;
};

}  // namespace pumice::engine
