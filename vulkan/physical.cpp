// SPDX-License-Identifier: Apache-2.0
#include "vulkan/physical.h"

#include <algorithm>
#include <thread>

#include "vulkan/device_features.h"
#include "vulkan/pipeline_log.h"

namespace pumice::engine {
namespace {

Extensions extensions_of(const Vk& vk, VkPhysicalDevice device) {
  Extensions result;
  uint32_t count = 0;
  VK(vk, Stage::device, "extensions", EnumerateDeviceExtensionProperties, device, nullptr, &count, nullptr);
  result.list.resize(count);
  VK(vk, Stage::device, "extensions", EnumerateDeviceExtensionProperties, device, nullptr, &count, result.list.data());
  result.list.resize(count);
  return result;
}

const char* kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

void read_limits(const VkPhysicalDeviceProperties& core, const VkPhysicalDeviceMaintenance3Properties& maintenance,
                 Physical& out) {
  const VkPhysicalDeviceLimits& limits = core.limits;
  Features& features = out.info.features;
  features.max_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  features.max_shared_bytes = limits.maxComputeSharedMemorySize;
  features.max_push_bytes = limits.maxPushConstantsSize;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, features.max_groups);
  features.max_storage_bytes = limits.maxStorageBufferRange;
  features.max_image_3d = limits.maxImageDimension3D;
  features.max_image_2d = limits.maxImageDimension2D;
  features.max_allocation_bytes = maintenance.maxMemoryAllocationSize;
  features.storage_alignment = std::max<uint64_t>(limits.minStorageBufferOffsetAlignment, 16);
  out.timestamp_period = static_cast<double>(limits.timestampPeriod);
  features.max_storage_buffers = std::min(
      {limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources});
}

// Vulkan requires these formats of every device. They are checked all the same: drivers may lack one.
void read_formats(const Vk& vk, Physical& out) {
  constexpr VkImageUsageFlags kUsage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_SAMPLED_BIT;
  for (uint32_t f = 0; f < kImageFormats; ++f) {
    const VkFormat format = vulkan_format(static_cast<ImageFormat>(f));
    for (const VkImageType type : {VK_IMAGE_TYPE_2D, VK_IMAGE_TYPE_3D}) {
      VkImageFormatProperties properties{};
      if (vk.GetPhysicalDeviceImageFormatProperties(out.handle, format, type, VK_IMAGE_TILING_OPTIMAL, kUsage, 0,
                                                    &properties) != VK_SUCCESS)
        out.info.features.image_formats &= ~(1u << f);
    }
  }
}

void read_queues(const Vk& vk, Physical& out) {
  uint32_t count = 0;
  vk.GetPhysicalDeviceQueueFamilyProperties(out.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.GetPhysicalDeviceQueueFamilyProperties(out.handle, &count, families.data());
  for (uint32_t i = 0; i < count && out.queue_family == ~0u; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;  // which includes transfers
    out.queue_family = i;
    out.timestamp_bits = families[i].timestampValidBits;
  }
}

void read_heaps(const Vk& vk, Physical& out) {
  VkPhysicalDeviceMemoryProperties memory{};
  vk.GetPhysicalDeviceMemoryProperties(out.handle, &memory);
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    out.info.memory_bytes += memory.memoryHeaps[i].size;
    out.info.heap_bytes = std::max<uint64_t>(out.info.heap_bytes, memory.memoryHeaps[i].size);
  }
}

std::string hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += format("%02x", bytes[i]);
  return text;
}

// What Vulkan 1.0 tells; extensions and limits are read after it.
VkPhysicalDeviceProperties read_basic(const Instance& instance, VkPhysicalDevice handle, Physical& out) {
  VkPhysicalDeviceProperties basic{};
  instance.vk.GetPhysicalDeviceProperties(handle, &basic);
  out.info.name = printable(basic.deviceName);
  out.info.kind = kind_of(basic.deviceType);
  out.info.features.cpu = basic.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  out.info.api_version = basic.apiVersion;
  out.type = basic.deviceType;
  out.api_version = std::min(basic.apiVersion, instance.api_version);
  out.info.vendor_id = basic.vendorID;
  out.info.device_id = basic.deviceID;
  out.info.driver_number = basic.driverVersion;
  std::copy_n(basic.pipelineCacheUUID, VK_UUID_SIZE, out.cache_uuid);
  return basic;
}

Physical read_physical(const Instance& instance, VkPhysicalDevice handle, uint32_t index) {
  const Vk& vk = instance.vk;
  Physical out;
  out.handle = handle;
  out.info.index = index;
  const VkPhysicalDeviceProperties basic = read_basic(instance, handle, out);
  if (basic.apiVersion < VK_API_VERSION_1_1) return out;  // listed, but open() refuses it

  const Extensions extensions = extensions_of(vk, handle);
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
  const auto chain = [&](auto& structure, VkStructureType type) {
    structure.sType = type;
    structure.pNext = properties.pNext;
    properties.pNext = &structure;
  };
  VkPhysicalDeviceIDProperties ids{};
  VkPhysicalDeviceMaintenance3Properties maintenance{};
  VkPhysicalDeviceMaintenance4Properties maintenance4{};
  VkPhysicalDeviceSubgroupProperties subgroup{};
  VkPhysicalDeviceDriverProperties driver{};
  VkPhysicalDeviceSubgroupSizeControlProperties control{};
  chain(ids, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  chain(maintenance, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  chain(subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  if (out.api_version >= VK_API_VERSION_1_2 || extensions.has("VK_KHR_driver_properties")) {
    chain(driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES);
  }
  if (out.api_version >= VK_API_VERSION_1_3 || extensions.has("VK_EXT_subgroup_size_control")) {
    chain(control, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
  }
  if (out.api_version >= VK_API_VERSION_1_3 || extensions.has("VK_KHR_maintenance4")) {
    chain(maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
  }
  VkPhysicalDeviceShaderIntegerDotProductProperties dot{};
  if (out.api_version >= VK_API_VERSION_1_3 || extensions.has("VK_KHR_shader_integer_dot_product")) {
    chain(dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES);
  }
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors{};
  VkPhysicalDeviceShaderCorePropertiesAMD cores{};
  if (extensions.has("VK_NV_shader_sm_builtins"))
    chain(multiprocessors, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  if (extensions.has("VK_AMD_shader_core_properties"))
    chain(cores, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  vk.GetPhysicalDeviceProperties2(handle, &properties);
  out.info.uuid = hex(ids.deviceUUID, VK_UUID_SIZE);
  out.info.driver = printable(driver.driverName);
  out.info.driver_id = driver.driverID;
  out.info.driver_version =
      driver.driverInfo[0] != 0 ? printable(driver.driverInfo) : format("0x%x", basic.driverVersion);
  read_heaps(vk, out);
  out.memory_budget = extensions.has("VK_EXT_memory_budget");
  out.pipeline_statistics = logs_pipelines() && extensions.has("VK_KHR_pipeline_executable_properties");
  read_limits(properties.properties, maintenance, out);
  if (maintenance4.maxBufferSize != 0)
    out.info.features.max_allocation_bytes =
        std::min<uint64_t>(out.info.features.max_allocation_bytes, maintenance4.maxBufferSize);
  read_formats(vk, out);
  out.info.features.compute_units =
      out.info.features.cpu
          ? std::thread::hardware_concurrency()
          : std::max(multiprocessors.shaderSMCount,
                     cores.shaderEngineCount * cores.shaderArraysPerEngineCount * cores.computeUnitsPerShaderArray);
  read_features(vk, extensions, subgroup, control, out);
  // Elsewhere a product of packed bytes is twenty instructions, and one of their values as floats is four.
  if (!out.info.features.cpu && !dot.integerDotProduct4x8BitPackedSignedAccelerated)
    out.info.features.bits &= ~bit(Feature::int_dot);
  out.info.features.guess_registers();
  read_queues(vk, out);
  return out;
}

}  // namespace

VkFormat vulkan_format(ImageFormat format) {
  constexpr VkFormat kFormats[kImageFormats] = {VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R16G16B16A16_SFLOAT,
                                                VK_FORMAT_R32G32B32A32_SINT,   VK_FORMAT_R8G8B8A8_SINT,
                                                VK_FORMAT_R8G8B8A8_UINT,       VK_FORMAT_R32G32B32A32_UINT};
  return kFormats[static_cast<uint32_t>(format)];
}

bool Extensions::has(std::string_view name) const {
  return std::any_of(list.begin(), list.end(), [&](const auto& each) { return name == each.extensionName; });
}

std::vector<Physical> list_physical(const Instance& instance) {
  const Vk& vk = instance.vk;
  uint32_t count = 0;
  VK(vk, Stage::device, "devices", EnumeratePhysicalDevices, instance.handle, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (count != 0) VK(vk, Stage::device, "devices", EnumeratePhysicalDevices, instance.handle, &count, handles.data());
  std::vector<Physical> result;
  for (uint32_t i = 0; i < count; ++i) {
    try {
      result.push_back(read_physical(instance, handles[i], i));
    } catch (const Error& error) {  // one broken driver does not hide the other devices
      Physical& broken = result.emplace_back();
      broken.problem = std::make_shared<const Error>(error);
      broken.info.index = i;
      VkPhysicalDeviceProperties basic{};
      vk.GetPhysicalDeviceProperties(handles[i], &basic);
      broken.info.name = printable(basic.deviceName);
      broken.type = basic.deviceType;
    }
  }
  return result;
}

}  // namespace pumice::engine
