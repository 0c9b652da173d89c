// SPDX-License-Identifier: Apache-2.0
// The shaders of a program, as pipelines get them: unpacked once for all variants of a file, and checked.
#include "glsl/spirv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "glsl/binary.h"
#include "glsl/linear_gemv.h"
#include "glsl/softmax.h"
#include "test/support/error_of.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kMagic = 0x07230203;

TEST(Spirv, EveryVariantBeginsAndEndsAsAModule) {
  SpirvBlocks blocks;
  size_t words = 0;
  for (const Shader& shader : glsl::binary::kVariants) {
    const std::span<const uint32_t> code = blocks.words(shader);
    ASSERT_EQ(code.size(), shader.num_words);
    EXPECT_EQ(code[0], kMagic) << shader.name;
    EXPECT_EQ(code.back(), 0x00010038u) << shader.name;  // OpFunctionEnd
    words += code.size();
  }
  EXPECT_EQ(words, glsl::binary::kBlock.num_words);
}

TEST(Variant, ThatItsShaderLeavesOutIsAnErrorThatNamesIt) {
  using namespace glsl::linear_gemv;
  size_t there = 0;
  for (size_t i = 0; i < std::size(kDTYPE) * std::size(kWEIGHT); ++i) {
    const auto dtype = static_cast<DTYPE>(i / std::size(kWEIGHT));
    const auto weight = static_cast<WEIGHT>(i % std::size(kWEIGHT));
    const std::string name = "linear_gemv[" + std::string(kDTYPE[i / std::size(kWEIGHT)]) + "," +
                             std::string(kWEIGHT[i % std::size(kWEIGHT)]) + ",buffer,texture2d]";
    const bool mixed = (dtype == DTYPE::f32 && weight == WEIGHT::f16) || (dtype == DTYPE::f16 && weight == WEIGHT::f32);
    const auto ask = [&] { return &variant(dtype, weight, STORAGE::buffer, WEIGHT_STORAGE::texture2d); };
    if (!mixed) {
      EXPECT_EQ(ask()->name, name);
      ++there;
      continue;
    }
    const Error error = test::error_of(ask);
    EXPECT_EQ(error.code(), Code::Internal);
    EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
  }
  EXPECT_EQ(std::size(kVariants), 4 * there);
}

TEST(Spirv, IsUnpackedOnceForThreadsThatAskTogether) {
  SpirvBlocks blocks;
  std::vector<const uint32_t*> first(4);
  std::vector<std::thread> threads;
  for (const uint32_t*& each : first) {
    threads.emplace_back([&] { each = blocks.words(glsl::softmax::kVariants[0]).data(); });
  }
  for (std::thread& each : threads) each.join();
  for (const uint32_t* each : first) EXPECT_EQ(each, first[0]);
  EXPECT_EQ(first[0][0], kMagic);
}

TEST(Spirv, ADamagedBlockIsAnErrorEveryTime) {
  Spirv block = glsl::softmax::kBlock;
  if (!block.is_packed()) GTEST_SKIP() << "this build does not pack shaders";
  std::vector<uint8_t> bytes(block.bytes().begin(), block.bytes().end());
  block.begin = bytes.data();
  block.end = bytes.data() + bytes.size();
  Shader shader = glsl::softmax::kVariants[0];
  shader.block = &block;
  SpirvBlocks blocks;
  for (const size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    bytes[at] ^= 1;
    EXPECT_THROW(blocks.words(shader), Error) << at;
    bytes[at] ^= 1;
  }
  block.num_words += 1;
  EXPECT_THROW(blocks.words(shader), Error);
  block.num_words -= 1;
  EXPECT_EQ(blocks.words(shader)[0], kMagic);
}

}  // namespace
}  // namespace pumice::engine
