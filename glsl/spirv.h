// SPDX-License-Identifier: Apache-2.0
// The SPIR-V of shaders, unpacked when pipelines are made of it. A program holds that of each shader file as one block,
// by zstd where the build has it: variants resemble each other, and all of them are a sixth of their size so.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "glsl/shader.h"

namespace pumice::engine {

// Unpacks each block once and keeps it until it is destroyed. Threads may share one.
class SpirvBlocks {
 public:
  // Stays valid as long as this object. Throws Internal where the program's own block is damaged.
  std::span<const uint32_t> words(const Shader& shader);

 private:
  struct Unpacked {
    std::mutex mutex;  // not a once_flag: what throws in one hangs under ThreadSanitizer
    std::unique_ptr<uint32_t[]> words;
  };
  std::mutex mutex_;
  std::unordered_map<const Spirv*, Unpacked> blocks_;  // whose elements stay where they are
};

}  // namespace pumice::engine
