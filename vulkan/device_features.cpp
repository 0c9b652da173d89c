// SPDX-License-Identifier: Apache-2.0
#include "vulkan/device_features.h"

#include <algorithm>
#include <bit>

#include "vulkan/driver_bugs.h"
#include "vulkan/probe.h"

namespace pumice::engine {
namespace {

// Every feature structure that the engine uses. Filled by a query, or from Features to create the device.
struct Chain {
  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDeviceShaderFloat16Int8Features small{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{};
  VkPhysicalDeviceVulkanMemoryModelFeatures model{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup{};
  VkPhysicalDevicePipelineRobustnessFeaturesEXT robustness{};
  VkPhysicalDeviceBufferDeviceAddressFeatures address{};
  VkPhysicalDeviceShaderAtomicInt64Features atomic64{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT float_atomics{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{};
};

struct Node {
  const char* extension;  // nullptr: core 1.1
  uint32_t core_since;    // 0: never
  VkStructureType type;
  VkBaseOutStructure* (*structure)(Chain&);
};

#define PUMICE_NODE(member) [](Chain& chain) { return reinterpret_cast<VkBaseOutStructure*>(&chain.member); }
constexpr Node kNodes[] = {
    {nullptr, VK_API_VERSION_1_1, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, PUMICE_NODE(storage16)},
    {"VK_KHR_8bit_storage", VK_API_VERSION_1_2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
     PUMICE_NODE(storage8)},
    {"VK_KHR_shader_float16_int8", VK_API_VERSION_1_2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
     PUMICE_NODE(small)},
    {"VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, PUMICE_NODE(dot)},
    {"VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
     PUMICE_NODE(model)},
    {"VK_KHR_cooperative_matrix", 0, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
     PUMICE_NODE(matrix)},
    {"VK_KHR_shader_bfloat16", 0, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
     PUMICE_NODE(bfloat16)},
    {"VK_EXT_subgroup_size_control", VK_API_VERSION_1_3,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, PUMICE_NODE(subgroup)},
    {"VK_EXT_pipeline_robustness", 0, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT,
     PUMICE_NODE(robustness)},
    {"VK_KHR_buffer_device_address", VK_API_VERSION_1_2,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, PUMICE_NODE(address)},
    {"VK_KHR_shader_atomic_int64", VK_API_VERSION_1_2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_INT64_FEATURES,
     PUMICE_NODE(atomic64)},
    {"VK_EXT_shader_atomic_float", 0, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
     PUMICE_NODE(float_atomics)},
    {"VK_KHR_pipeline_executable_properties", 0,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, PUMICE_NODE(statistics)},
};

struct Switch {
  Feature feature;
  VkBaseOutStructure* (*structure)(Chain&);
  VkBool32& (*member)(Chain&);
};

#define PUMICE_SWITCH(feature, structure, member) \
  {Feature::feature, PUMICE_NODE(structure), [](Chain& chain) -> VkBool32& { return chain.structure.member; }}
constexpr Switch kSwitches[] = {
    PUMICE_SWITCH(float16, small, shaderFloat16),
    PUMICE_SWITCH(int8, small, shaderInt8),
    PUMICE_SWITCH(int16, core, features.shaderInt16),
    PUMICE_SWITCH(int64, core, features.shaderInt64),
    PUMICE_SWITCH(storage16, storage16, storageBuffer16BitAccess),
    PUMICE_SWITCH(storage8, storage8, storageBuffer8BitAccess),
    PUMICE_SWITCH(int_dot, dot, shaderIntegerDotProduct),
    PUMICE_SWITCH(coopmat, matrix, cooperativeMatrix),
    PUMICE_SWITCH(memory_model, model, vulkanMemoryModel),
    PUMICE_SWITCH(bfloat16, bfloat16, shaderBFloat16Type),
    PUMICE_SWITCH(subgroup_size_control, subgroup, subgroupSizeControl),
    PUMICE_SWITCH(robust, core, features.robustBufferAccess),
    PUMICE_SWITCH(addresses, address, bufferDeviceAddress),
    PUMICE_SWITCH(atomic64, atomic64, shaderBufferInt64Atomics),
    PUMICE_SWITCH(float_atomics, float_atomics, shaderBufferFloat32AtomicAdd),
};
#undef PUMICE_SWITCH
#undef PUMICE_NODE

// Appends every structure that `wanted` accepts to the chain of chain.core.
template <class Wanted>
void link(Chain& chain, Wanted wanted) {
  chain.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  for (const Node& node : kNodes) {
    VkBaseOutStructure* structure = node.structure(chain);
    structure->sType = node.type;
    if (!wanted(node, structure)) continue;
    structure->pNext = static_cast<VkBaseOutStructure*>(chain.core.pNext);
    chain.core.pNext = structure;
  }
}

void add(MatrixShapes& shapes, const MatrixShape& shape) {
  const auto end = std::find(shapes.begin(), shapes.end(), MatrixShape{});
  if (end == shapes.end() || std::find(shapes.begin(), end, shape) != end) return;
  *end = shape;
  std::stable_sort(shapes.begin(), end + 1, [](const MatrixShape& a, const MatrixShape& b) {
    return uint64_t{a.m} * a.n * a.k > uint64_t{b.m} * b.n * b.k;
  });
}

// The shapes that kernels use. The feature bit alone is not enough: lavapipe on arm64 or with narrow vectors lists
// shapes without the bit, other drivers have the bit without shapes.
void read_matrix_shapes(const Vk& vk, VkPhysicalDevice device, Features& features) {
  uint32_t count = 0;
  if (!vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR ||
      vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr) != VK_SUCCESS) {
    return;
  }
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  if (vk.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, all.data()) < VK_SUCCESS) return;
  all.resize(count);
  for (const VkCooperativeMatrixPropertiesKHR& each : all) {
    if (each.scope != VK_SCOPE_SUBGROUP_KHR || each.saturatingAccumulation || each.AType != each.BType ||
        each.CType != each.ResultType) {
      continue;
    }
    const MatrixShape shape{each.MSize, each.NSize, each.KSize};
    if (each.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && each.CType == VK_COMPONENT_TYPE_FLOAT32_KHR)
      add(features.matrix_f16, shape);
    if (each.AType == VK_COMPONENT_TYPE_SINT8_KHR && each.CType == VK_COMPONENT_TYPE_SINT32_KHR)
      add(features.matrix_s8, shape);
  }
}

// Kernels that use subgroups ask for a size. Where one of fewer than 32 can be had, invocations of larger ones have few
// registers each: Intel's have 128 of 32 bytes for a whole subgroup. A workgroup may have so many subgroups at most.
void take_small_subgroups(const VkPhysicalDeviceSubgroupSizeControlProperties& control, Features& features) {
  if (features.min_subgroup_size >= std::min(features.subgroup_size, 32u)) return;
  features.subgroup_size = std::clamp(8u, features.min_subgroup_size, features.subgroup_size);
  const uint64_t most = uint64_t{features.subgroup_size} * control.maxComputeWorkgroupSubgroups;
  features.max_invocations = std::bit_floor(static_cast<uint32_t>(std::min<uint64_t>(features.max_invocations, most)));
}

}  // namespace

void read_features(const Vk& vk, const Extensions& extensions, const VkPhysicalDeviceSubgroupProperties& subgroup,
                   const VkPhysicalDeviceSubgroupSizeControlProperties& control, Physical& out) {
  Chain chain;
  link(chain, [&](const Node& node, VkBaseOutStructure*) {
    return (node.core_since != 0 && out.api_version >= node.core_since) ||
           (node.extension && extensions.has(node.extension));
  });
  vk.GetPhysicalDeviceFeatures2(out.handle, &chain.core);
  Features& features = out.info.features;
  for (const Switch& each : kSwitches) {
    if (each.member(chain)) features.bits |= bit(each.feature);
  }
  if (features.has(Feature::coopmat) && may_ask(out.info, Feature::coopmat))
    read_matrix_shapes(vk, out.handle, features);
  if (features.matrix_f16[0].m == 0 && features.matrix_s8[0].m == 0) features.bits &= ~bit(Feature::coopmat);
  // The memory model alone would forbid the atomics of other kernels (VUID-RuntimeSpirv-vulkanMemoryModel-06265).
  if (!chain.model.vulkanMemoryModelDeviceScope) features.bits &= ~bit(Feature::memory_model);
  if (!chain.float_atomics.shaderSharedFloat32AtomicAdd) features.bits &= ~bit(Feature::float_atomics);
  const bool compute = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  const auto add = [&](VkSubgroupFeatureFlagBits operation, Feature feature) {
    if (compute && (subgroup.supportedOperations & operation) != 0) features.bits |= bit(feature);
  };
  add(VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, Feature::subgroup_arithmetic);
  add(VK_SUBGROUP_FEATURE_SHUFFLE_BIT, Feature::subgroup_shuffle);
  add(VK_SUBGROUP_FEATURE_CLUSTERED_BIT, Feature::subgroup_clustered);
  features.subgroup_size = features.min_subgroup_size = features.max_subgroup_size =
      std::max(subgroup.subgroupSize, 1u);
  if (features.has(Feature::subgroup_size_control) &&
      (control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    features.min_subgroup_size = control.minSubgroupSize;
    features.max_subgroup_size = control.maxSubgroupSize;
    out.full_subgroups = chain.subgroup.computeFullSubgroups != 0;
    take_small_subgroups(control, features);
  } else {
    features.bits &= ~bit(Feature::subgroup_size_control);
  }
  for (const Feature feature : {Feature::fragments, Feature::fragments_int8})
    if (may_have_fragments(features, feature)) features.bits |= bit(feature);
  if (features.matrix_f16[0].m != 0) features.bits |= bit(Feature::split);
  if (features.has(Feature::addresses) && features.has(Feature::atomic64) && features.compute_units != 0)
    features.bits |= bit(Feature::persistent);
  out.pipeline_robustness = chain.robustness.pipelineRobustness != 0;
}

VkDevice create_device(const Vk& vk, const Physical& physical, const Features& features) {
  Chain chain;
  for (const Switch& each : kSwitches) each.member(chain) = features.has(each.feature);
  chain.model.vulkanMemoryModelDeviceScope = chain.model.vulkanMemoryModel;
  chain.float_atomics.shaderSharedFloat32AtomicAdd = chain.float_atomics.shaderBufferFloat32AtomicAdd;
  if (physical.full_subgroups) chain.subgroup.computeFullSubgroups = chain.subgroup.subgroupSizeControl;
  chain.robustness.pipelineRobustness = features.has(Feature::robust) && physical.pipeline_robustness;
  chain.statistics.pipelineExecutableInfo = physical.pipeline_statistics;
  const auto* robustness = reinterpret_cast<const VkBaseOutStructure*>(&chain.robustness);
  const auto* statistics = reinterpret_cast<const VkBaseOutStructure*>(&chain.statistics);
  std::vector<const char*> extensions;
  link(chain, [&](const Node& node, VkBaseOutStructure* structure) {
    // A structure with nothing in it is left out, and so is its extension.
    const bool used = (structure == robustness && chain.robustness.pipelineRobustness) ||
                      (structure == statistics && physical.pipeline_statistics) ||
                      std::any_of(std::begin(kSwitches), std::end(kSwitches), [&](const Switch& each) {
                        return each.structure(chain) == structure && each.member(chain);
                      });
    if (used && node.extension != nullptr && (node.core_since == 0 || physical.api_version < node.core_since)) {
      extensions.push_back(node.extension);
    }
    return used;
  });
  if (physical.memory_budget) extensions.push_back("VK_EXT_memory_budget");

  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &chain.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = nullptr;
  VK(vk, Stage::device, "device", CreateDevice, physical.handle, &info, nullptr, &device);
  return device;
}

}  // namespace pumice::engine
