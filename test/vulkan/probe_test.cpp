// SPDX-License-Identifier: Apache-2.0
// A device whose matrices have other registers than the probe expects, or that computes wrong numbers, gets no kernels
// that rely on them, and an error names the feature. Replaced Vulkan functions stand for the driver: they list the
// shapes and return the words of the probe that the test wants.
#include "vulkan/probe.h"
#include "ops/linear/kernels.h"
#include "ops/linear/pick.h"
#include "test/support/played_driver.h"
#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using testing::HasSubstr;

uint32_t answer;  // result of the probe, for every lane
bool one_lane_is_wrong;
Vk real;  // the functions of the driver
PFN_vkGetPhysicalDeviceProperties2 real_properties = nullptr;

VkResult list_shapes(VkPhysicalDevice, uint32_t* count, VkCooperativeMatrixPropertiesKHR* out) {
  constexpr uint32_t kColumns[] = {16, 8, 8};
  for (uint32_t i = 0; out != nullptr && i < *count && i < 3; ++i)
    pumice::test::set_shape(out[i], 16, kColumns[i], i == 2 ? 32 : 16, i == 2);
  *count = 3;
  return VK_SUCCESS;
}

void subgroups_of_32(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  real_properties(device, out);
  pumice::test::set_subgroup_size(*out, 32);
}

VkResult no_pipeline(VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*,
                     const VkAllocationCallbacks*, VkPipeline* out) {
  *out = reinterpret_cast<VkPipeline>(uintptr_t{1});
  return VK_SUCCESS;
}

void write_answer(VkCommandBuffer commands, VkBuffer, VkBuffer to, uint32_t, const VkBufferCopy* region) {
  const VkDeviceSize but_last = region->size - 4;
  real.CmdFillBuffer(commands, to, region->dstOffset, but_last, answer);
  real.CmdFillBuffer(commands, to, region->dstOffset + but_last, 4, one_lane_is_wrong ? 0 : answer);
}

void play_driver(Vk& vk) {
  if (!vk.CreateFence) {  // a call for the instance, not for the device
    if (!vk.GetPhysicalDeviceProperties2) return;
    real_properties = vk.GetPhysicalDeviceProperties2.pointer;
    vk.GetPhysicalDeviceProperties2.pointer = subgroups_of_32;
    if (vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
      vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR.pointer = list_shapes;
    return;
  }
  real = vk;
  vk.CreateComputePipelines.pointer = no_pipeline;
  vk.DestroyPipeline.pointer = [](VkDevice, VkPipeline, const VkAllocationCallbacks*) {};
  vk.CmdBindPipeline.pointer = [](VkCommandBuffer, VkPipelineBindPoint, VkPipeline) {};
  vk.CmdDispatch.pointer = [](VkCommandBuffer, uint32_t, uint32_t, uint32_t) {};
  vk.CmdCopyBuffer.pointer = write_answer;
}

TEST(Probe, WrongNumbersTakeTheFeatureAway) {
  const Features usual = test::open()->features();
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, Feature::int8}) {
    if (!usual.has(feature)) GTEST_SKIP() << "the driver has no " << name(feature);
  }
  const test::Hook hook(play_driver);
  const LinearShape shape{.m = 64, .n = 64, .k = 64, .weight = WeightType::q4, .dtype = DType::f16};
  const LinearKernel& kernel = linear_kernel("fragments64x128");
  const auto features = [&](uint32_t word, bool wrong_lane) {
    answer = word;
    one_lane_is_wrong = wrong_lane;
    return test::open()->features();
  };
  const Features right = features(0x600d, false);
  EXPECT_TRUE(right.has(Feature::fragments));
  EXPECT_TRUE(right.has(Feature::fragments_int8));
  EXPECT_EQ(unsupported_reason(kernel, shape, right), "");
  for (const Features& wrong : {features(0x600d, true), features(0, false), features(0x600c, false)}) {
    EXPECT_TRUE(wrong.has(Feature::coopmat)) << "which the portable kernels use";
    EXPECT_FALSE(wrong.has(Feature::fragments));
    EXPECT_FALSE(wrong.has(Feature::fragments_int8));
    EXPECT_THAT(unsupported_reason(kernel, shape, wrong), HasSubstr("'fragments', which the device lacks"));
    EXPECT_NE(pick_linear(shape, wrong).family, Family::fragments);
    EXPECT_NE(pick_linear(shape, wrong).family, Family::gemv_fragments);
  }
}

}  // namespace
}  // namespace pumice::engine
