// SPDX-License-Identifier: Apache-2.0
// No capability of SPIR-V says that a kernel knows where a cooperative matrix's elements lie; its name does, by which
// the self test tells its family. What it does shows in its SPIR-V: it reaches single elements of matrices.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "glsl/spirv.h"
#include "tools/kernel_bench/shaders.h"
#include "vulkan/kernel_family.h"

namespace pumice::engine::kernel_bench {
namespace {

// Opcodes of SPIR-V.
enum : uint32_t {
  kTypeArray = 28,
  kTypePointer = 32,
  kVariable = 59,
  kAccessChain = 65,
  kInBoundsAccessChain = 66,
  kExtract = 81,
  kInsert = 82,
  kTypeMatrix = 4456,  // OpTypeCooperativeMatrixKHR
};

// Whether an element of a cooperative matrix is read or written by its number.
bool reaches_elements(std::span<const uint32_t> words) {
  std::map<uint32_t, uint32_t> pointee, element;  // of a type of pointers; of arrays
  std::map<uint32_t, uint32_t> types;             // of results, as far as matrices come from them
  std::set<uint32_t> matrices;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t opcode = words[at] & 0xffff, count = words[at] >> 16;
    const auto word = [&](uint32_t i) { return words[at + i]; };
    if (opcode == kTypeMatrix) matrices.insert(word(1));
    if (opcode == kTypeArray) element[word(1)] = word(2);
    if (opcode == kTypePointer) pointee[word(1)] = word(3);
    if (opcode == kExtract || opcode == kInsert) {
      const uint32_t from = types[word(opcode == kExtract ? 3 : 4)];
      uint32_t type = from;
      for (uint32_t i = opcode == kExtract ? 4 : 5; i < count && !matrices.contains(type); ++i) type = element[type];
      const bool whole = matrices.contains(type) && (opcode == kExtract ? word(1) == type : types[word(3)] == type);
      if (matrices.contains(type) && !whole) return true;
    }
    if ((opcode == kAccessChain || opcode == kInBoundsAccessChain) && types.contains(word(3))) {
      uint32_t type = pointee[types[word(3)]];
      for (uint32_t i = 4; i < count && !matrices.contains(type); ++i) type = element[type];
      if (matrices.contains(type) && pointee[word(1)] != type) return true;
    }
    if (opcode > kTypePointer && count >= 3 &&
        (pointee.contains(word(1)) || matrices.contains(word(1)) || element.contains(word(1))))
      types[word(2)] = word(1);
  }
  return false;
}

TEST(Fragments, AreInTheNamesOfKernelsThatReachElements) {
  SpirvBlocks blocks;
  size_t found = 0, plain = 0;
  for (const ShaderFile& file : shader_files()) {
    for (const Shader& shader : file.variants) {
      if ((shader.features & bit(Feature::coopmat)) == 0) continue;
      const bool reaches = reaches_elements(blocks.words(shader));
      const bool named = std::string_view(shader.name).find("fragments") != std::string_view::npos;
      EXPECT_EQ(reaches, named) << shader.name;
      EXPECT_EQ(family_of(shader) == KernelFamily::fragments, named && !file.stem.starts_with("probe_")) << shader.name;
      (reaches ? found : plain) += 1;
    }
  }
  EXPECT_GT(found, 10u);
  EXPECT_GT(plain, 10u);
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
