// SPDX-License-Identifier: Apache-2.0
// Parts of drivers that tests play, between the real one and the engine.
#pragma once

#include <dlfcn.h>
#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace pumice::test {

// Of the loader that LIE_LOADER names.
inline PFN_vkGetInstanceProcAddr real_loader() {
  static const auto function = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      dlsym(dlopen(std::getenv("LIE_LOADER"), RTLD_NOW), "vkGetInstanceProcAddr"));
  return function;
}

// Keeps `found`, the driver's function, in `real`; the result stands for it.
template <class Function>
PFN_vkVoidFunction in_place_of(Function& real, PFN_vkVoidFunction found, Function ours) {
  real = reinterpret_cast<Function>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(ours);
}

// Instructions begin after five words; their first word is (words << 16 | opcode), and OpCapability is 17.
inline bool has_capability(const VkShaderModuleCreateInfo& info, uint32_t wanted) {
  const size_t words = info.codeSize / 4;
  for (size_t at = 5; at + 1 < words && (info.pCode[at] & 0xffff) == 17; at += info.pCode[at] >> 16)
    if (info.pCode[at + 1] == wanted) return true;
  return false;
}

// Subgroups of `size`, and no others, in the properties of a device.
inline void set_subgroup_size(VkPhysicalDeviceProperties2& properties, uint32_t size) {
  for (auto* each = static_cast<VkBaseOutStructure*>(properties.pNext); each != nullptr; each = each->pNext) {
    if (each->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES)
      reinterpret_cast<VkPhysicalDeviceSubgroupProperties*>(each)->subgroupSize = size;
    if (each->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES) continue;
    auto* control = reinterpret_cast<VkPhysicalDeviceSubgroupSizeControlProperties*>(each);
    control->minSubgroupSize = control->maxSubgroupSize = size;
  }
}

// Matrices of a subgroup: of bytes with sums of 32 bits, or of fp16 with sums in fp32.
inline void set_shape(VkCooperativeMatrixPropertiesKHR& out, uint32_t m, uint32_t n, uint32_t k, bool bytes) {
  out.MSize = m, out.NSize = n, out.KSize = k;
  out.AType = out.BType = bytes ? VK_COMPONENT_TYPE_SINT8_KHR : VK_COMPONENT_TYPE_FLOAT16_KHR;
  out.CType = out.ResultType = bytes ? VK_COMPONENT_TYPE_SINT32_KHR : VK_COMPONENT_TYPE_FLOAT32_KHR;
  out.saturatingAccumulation = VK_FALSE;
  out.scope = VK_SCOPE_SUBGROUP_KHR;
}

}  // namespace pumice::test
