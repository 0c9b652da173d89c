// SPDX-License-Identifier: Apache-2.0
#include "glsl/spirv.h"

#ifdef PUMICE_WITH_ZSTD
#include <zstd.h>
#endif

#include "base/error.h"

namespace pumice::engine {
namespace {

void unpack(const Spirv& block, uint32_t* out, const char* shader) {
  const size_t bytes = size_t{block.num_words} * sizeof(uint32_t);
#ifdef PUMICE_WITH_ZSTD
  const size_t got = ZSTD_decompress(out, bytes, block.begin, block.bytes().size());
  const char* why = ZSTD_isError(got) ? ZSTD_getErrorName(got) : "of another size";
#else
  const size_t got = 0;
  const char* why = "packed, and this build cannot unpack it";
  (void)out;
#endif
  if (got != bytes) {
    fail(Code::Internal, Stage::encode, shader, "the shader's block of %zu bytes in this program is damaged: %s",
         block.bytes().size(), why);
  }
}

}  // namespace

std::span<const uint32_t> SpirvBlocks::words(const Shader& shader) {
  const Spirv& block = *shader.block;
  if (!block.is_packed()) {  // and aligned by blobs.S.in
    return {static_cast<const uint32_t*>(block.begin) + shader.first_word, shader.num_words};
  }
  Unpacked* unpacked = nullptr;
  {
    std::lock_guard lock(mutex_);
    unpacked = &blocks_[&block];
  }
  std::lock_guard lock(unpacked->mutex);
  if (unpacked->words == nullptr) {
    auto words = std::make_unique_for_overwrite<uint32_t[]>(block.num_words);
    unpack(block, words.get(), shader.name);
    unpacked->words = std::move(words);
  }
  return {unpacked->words.get() + shader.first_word, shader.num_words};
}

}  // namespace pumice::engine
