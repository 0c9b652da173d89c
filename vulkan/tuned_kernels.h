// SPDX-License-Identifier: Apache-2.0
// The kernels that `pumice tune` measured to be the fastest on a device, and the file of the cache that keeps them.
// Selection asks here before it asks its own tables (ops/linear/tuned.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "vulkan/cache_file.h"

namespace pumice::engine {

class TunedKernels {
 public:
  explicit TunedKernels(uint64_t version = 0) : version_(version) {}
  virtual ~TunedKernels() = default;
  // The name of the kernel for a product, which is a text without its number of rows, and so many rows: the one that
  // was measured at them, else at the nearest number of rows with the same power of two above it; "": none.
  virtual std::string_view find(std::string_view product, int64_t rows) const;
  void set(const std::string& product, int64_t rows, const std::string& kernel);
  size_t size() const { return kernels_.size(); }
  uint64_t version() const { return version_; }  // of the kernels that were timed

  // Lines of text, sorted: "version 0123456789abcdef", then "PRODUCT ROWS KERNEL".
  std::string text() const;
  // Null for what is no such text. Products and kernels may be unknown.
  static std::shared_ptr<const TunedKernels> parse(std::string_view text);

 private:
  uint64_t version_;
  std::map<std::pair<std::string, int64_t>, std::string> kernels_;  // by product and rows
};

inline constexpr CacheKind kTunedCache{"table of tuned kernels", "tuned", "PMTK", 1, 1ull << 20};

// Of a device, its driver, and what is switched on of it.
class TunedFile {
 public:
  TunedFile(const Physical& physical, const Features& features, const std::string& cache_dir);
  // Null where there is none, with one warning where it is damaged.
  std::shared_ptr<const TunedKernels> load() noexcept;
  bool save(const TunedKernels& kernels) noexcept;
  const std::string& path() const { return file_.path(); }

 private:
  CacheFile file_;
};

}  // namespace pumice::engine
