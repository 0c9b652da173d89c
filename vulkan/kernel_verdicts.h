// SPDX-License-Identifier: Apache-2.0
// Which kernels a device runs rightly, as the self test found (runtime/self_test.h), and the file of the cache that
// keeps it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "glsl/shader.h"
#include "vulkan/cache_file.h"
#include "vulkan/features.h"

namespace pumice::engine {

inline constexpr CacheKind kVerdictCache{"table of self tests", "tested", "PMKV", 1, 1ull << 20};

// By the name of a kernel, "conv2d_tiled[f16,buffer]"; a verdict on other bytes of its file counts as none.
class KernelVerdicts {
 public:
  KernelVerdicts(const Physical& physical, const Features& features, const std::string& cache_dir);
  // What is wrong with it; "": it is right. None where it was not tested.
  std::optional<std::string> find(const Shader& shader) const;
  void set(const Shader& shader, const std::string& wrong);
  void save() noexcept;  // one warning where it cannot be written
  // Held by who tests, so that two loads do not test the same.
  std::mutex& testing() { return testing_; }

  // Lines of text: "KERNEL HASH", and after a space what is wrong. False, and nothing is known, for other text.
  std::string text() const;
  bool parse(std::string_view text);

 private:
  struct Verdict {
    uint64_t code;
    std::string wrong;
  };
  void load() noexcept;
  uint64_t code_of(const Shader& shader) const;  // a hash of its file's bytes

  uint64_t salt_;  // of how subgroups are run
  CacheFile file_;
  std::map<std::string, Verdict, std::less<>> verdicts_;
  mutable std::map<const Spirv*, uint64_t> codes_;
  mutable std::mutex mutex_;  // of both
  std::mutex testing_;
};

}  // namespace pumice::engine
