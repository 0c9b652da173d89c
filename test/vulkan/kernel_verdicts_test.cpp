// SPDX-License-Identifier: Apache-2.0
#include "vulkan/kernel_verdicts.h"

#include <gtest/gtest.h>

#include "glsl/conv2d_fragments.h"
#include "glsl/conv2d_fragments_int8.h"
#include "glsl/conv2d_pack_fragments.h"
#include "glsl/decoder_layers.h"
#include "glsl/linear_dot_gemv.h"
#include "glsl/linear_gemv_fragments.h"
#include "glsl/linear_gemv_rows.h"
#include "glsl/linear_matrix.h"
#include "glsl/probe_fragments.h"
#include "glsl/sdpa_fragments.h"
#include "vulkan/kernel_family.h"
#include "vulkan/runnable.h"

namespace pumice::engine {
namespace {

const Shader& kMatrix = glsl::linear_matrix::kVariants[0];
const Shader& kDot = glsl::linear_dot_gemv::kVariants[0];

KernelVerdicts verdicts(uint32_t subgroup_size = 32) {
  Features features;
  features.subgroup_size = subgroup_size;
  return {Physical{}, features, "off"};
}

TEST(KernelVerdicts, AreKeptAsText) {
  KernelVerdicts all = verdicts(), again = verdicts();
  EXPECT_FALSE(all.find(kMatrix).has_value());
  all.set(kMatrix, "");
  all.set(kDot, "output 3 is 1, not 2");
  ASSERT_TRUE(again.parse(all.text()));
  EXPECT_EQ(again.find(kMatrix).value(), "");
  EXPECT_EQ(again.find(kDot).value(), "output 3 is 1, not 2");
}

TEST(KernelVerdicts, OfOtherCodeCountAsNone) {
  KernelVerdicts all = verdicts(), other = verdicts(8);
  all.set(kMatrix, "");
  std::string text = all.text();
  ASSERT_TRUE(other.parse(text));  // the same code in other subgroups
  EXPECT_FALSE(other.find(kMatrix).has_value());
  char& digit = text[text.find(' ') + 1];
  digit = digit == '0' ? '1' : '0';
  ASSERT_TRUE(all.parse(text));
  EXPECT_FALSE(all.find(kMatrix).has_value());
}

TEST(KernelVerdicts, OtherTextIsRefused) {
  KernelVerdicts all = verdicts();
  all.set(kMatrix, "");
  for (const char* text : {"kernel", "kernel xyz",
                           "kernel 12 a\x01"
                           "b",
                           " 12", "kernel 12345678901234567890"})
    EXPECT_FALSE(all.parse(text)) << text;
  EXPECT_EQ(all.find(kMatrix).value(), "");  // as before
  EXPECT_FALSE(all.parse("kernel 12 " + std::string(1000, 'x')));
}

TEST(KernelFamily, IsWhatAKernelNeedsMost) {
  EXPECT_EQ(family_of(kMatrix), KernelFamily::matrix);
  EXPECT_EQ(family_of(kDot), KernelFamily::dot);  // it needs subgroup_arithmetic, too
  for (uint32_t f = 0; f < kKernelFamilies; ++f)
    EXPECT_EQ(engine::apply(Features{}, std::string("lie=") + name(static_cast<KernelFamily>(f))).lie,
              static_cast<KernelFamily>(f));
  EXPECT_THROW(engine::apply(Features{}, "lie=all"), Error);
}

TEST(KernelFamily, FragmentsAreThoseThatKnowPlaces) {
  const Shader& bytes = glsl::conv2d_fragments_int8::kVariants[0];
  for (const Shader* shader :
       {&glsl::linear_gemv_fragments::kVariants[0], &glsl::conv2d_fragments::kVariants[0], &bytes,
        &glsl::sdpa_fragments::kVariants[0], &glsl::decoder_layers::variant(glsl::decoder_layers::PRODUCT::fragments)})
    EXPECT_EQ(family_of(*shader), KernelFamily::fragments) << shader->name;
  EXPECT_EQ(needs(bytes) & ~bytes.features, bit(Feature::fragments_int8));
  EXPECT_EQ(needs(kMatrix), kMatrix.features);
  // What packs for them, and what probes whether there may be any.
  EXPECT_EQ(family_of(glsl::conv2d_pack_fragments::kVariants[0]), KernelFamily::portable);
  EXPECT_EQ(family_of(glsl::probe_fragments::variant()), KernelFamily::matrix);
  // Without them, kernels of matrices take over.
  EXPECT_EQ(needs(KernelFamily::fragments) & needs(KernelFamily::matrix), 0u);
}

TEST(KernelFamily, KernelsThatReadByAddressAreForCpuDrivers) {
  using namespace glsl::linear_gemv_rows;
  const Shader& bound = variant(DTYPE::f16, WEIGHT::q4, X::bound);
  const Shader& address = variant(DTYPE::f16, WEIGHT::q4, X::address);
  Features features;
  features.bits = bound.features | address.features;
  features.max_storage_buffers = features.max_push_bytes = 128;
  EXPECT_EQ(unrunnable_reason(features, {.shader = &bound}), "");
  EXPECT_EQ(unrunnable_reason(features, {.shader = &address}), "is made for CPU drivers and not run");
  features.cpu = true;
  EXPECT_EQ(unrunnable_reason(features, {.shader = &address}), "");
}

// Of atomics of 64 bits alone nobody knows whether all workgroups run at once. Without matrices the kernel is for tests
// on CPU drivers: on a GPU single kernels are faster.
TEST(KernelFamily, AllLayersOfADecoderNeedKnownComputeUnits) {
  using namespace glsl::decoder_layers;
  for (const Shader& shader : kVariants) {
    Features features;
    features.cpu = true;
    features.bits = needs(shader) & ~bit(Feature::persistent);
    EXPECT_TRUE(features.has(Feature::atomic64)) << shader.name;
    EXPECT_FALSE(may_run(shader, features)) << shader.name;
    features.bits |= bit(Feature::persistent);
    EXPECT_TRUE(may_run(shader, features)) << shader.name;
    features.cpu = false;
    EXPECT_EQ(may_run(shader, features), &shader == &variant(PRODUCT::fragments)) << shader.name;
    features.as_if_units = 132;  // like_gpu
    EXPECT_TRUE(may_run(shader, features)) << shader.name;
  }
}

}  // namespace
}  // namespace pumice::engine
