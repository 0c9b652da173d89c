// SPDX-License-Identifier: Apache-2.0
// Mistakes are planted where they should be, and nothing else changes. Whether tests find them: test/mutation/.
#include "tools/kernel_bench/plant.h"

#include <gtest/gtest.h>

#include <bit>

#include "glsl/spirv.h"
#include "tools/kernel_bench/shaders.h"

namespace pumice::engine::kernel_bench {
namespace {

// An instruction of SPIR-V.
std::vector<uint32_t> word(uint32_t op, std::vector<uint32_t> operands) {
  operands.insert(operands.begin(), static_cast<uint32_t>(operands.size() + 1) << 16 | op);
  return operands;
}

TEST(Plant, RoundingsAreCutOff) {
  const std::vector<uint32_t> header = {0x07230203, 0x10300, 0, 50, 0};
  const std::vector<uint32_t> import = word(11, {1, 0x4c534c47}),
                              whole = word(43, {2, 3, std::bit_cast<uint32_t>(0x1.8p23f)});
  const std::vector<uint32_t> composite = word(44, {4, 5, 3, 3}), round = word(12, {2, 6, 1, 2, 7});
  const std::vector<uint32_t> sum = word(129, {4, 8, 9, 5}), other = word(129, {4, 10, 9, 8});
  std::vector<uint32_t> code = header;
  for (const auto& each : {import, whole, composite, round, sum, other})
    code.insert(code.end(), each.begin(), each.end());
  const CutOff cut = cut_off(code);
  EXPECT_EQ(cut.found, 2u);
  std::vector<uint32_t> want = {0x07230203, 0x10300, 0, 51, 0};
  for (const auto& each : {import, whole, composite, word(12, {2, 6, 1, 3, 7}), word(12, {4, 50, 1, 3, 9}),
                           word(129, {4, 8, 50, 5}), other})
    want.insert(want.end(), each.begin(), each.end());
  EXPECT_EQ(cut.spirv, want);
}

TEST(Plant, ShadersThatQuantizeRound) {
  SpirvBlocks blocks;
  for (const ShaderFile& file : shader_files()) {
    for (const Shader& shader : file.variants) {
      const std::span<const uint32_t> words = blocks.words(shader);
      const CutOff cut = cut_off(words);
      if (file.stem == "quantize" || file.stem == "q8ta_binary") {
        EXPECT_GT(cut.found, 0u) << shader.name;
      } else if (cut.found == 0) {
        EXPECT_TRUE(std::ranges::equal(cut.spirv, words)) << shader.name;
      }
    }
  }
}

std::vector<std::string> changed(const std::string& text, std::string_view mistake) {
  const Case c = parse(text)[0];
  const auto right = bench_op(c.op).make(c, 1);
  const auto wrong = planted(*right, mistake);
  std::vector<std::string> names;
  if (wrong == nullptr) return names;
  const auto before = right->arguments(), after = wrong->arguments();
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].data.bytes != after[i].data.bytes || before[i].number != after[i].number)
      names.push_back(after[i].name);
  }
  return names;
}

// 131 stands for 0 among bytes of u8, as 3 among those of i8.
TEST(Plant, AColumnOfNothingIsOfZeroPoints) {
  for (const auto& [more, zero] : {std::pair("", 3), std::pair(",in=u8", 131)}) {
    const Case c = parse(std::string("op=q8ta_linear,m=3,n=5,k=64,g=0") + more)[0];
    const auto right = bench_op(c.op).make(c, 1);
    const auto wrong = planted(*right, "column");
    ASSERT_NE(wrong, nullptr);
    const Bytes before = right->arguments()[0].data.bytes, after = wrong->arguments()[0].data.bytes;
    size_t other = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] == after[i]) continue;
      EXPECT_EQ(std::to_integer<int>(after[i]), zero) << c.op << more;
      ++other;
    }
    EXPECT_GT(other, 0u);
  }
}

TEST(Plant, OneArgumentIsAnother) {
  using Names = std::vector<std::string>;
  const std::string linear = "op=linear_q4gsw,m=3,n=5,k=64,bias=1,zero=random,act=relu";
  const std::string conv = "op=q8ta_conv2d,b=2,c=3,o=5,h=6,w=5,bias=1,zero=random";
  for (const char* mistake : {"column", "group"}) EXPECT_EQ(changed(linear, mistake), Names{"x"}) << mistake;
  for (const char* mistake : {"scale", "zero", "bias", "act"}) EXPECT_EQ(changed(linear, mistake), Names{mistake});
  EXPECT_EQ(changed(conv, "column"), Names{"x"});
  for (const char* mistake : {"scale", "zero", "bias"}) EXPECT_EQ(changed(conv, mistake), Names{mistake});
  EXPECT_EQ(changed("op=softmax T=f16 x=T[3,37] dim=1", "input:x"), Names{"x"});
  EXPECT_EQ(changed("op=linear,m=3,n=5,k=64", "bias"), Names{});
  EXPECT_EQ(changed("op=linear,m=3,n=5,k=64", "act"), Names{});
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
