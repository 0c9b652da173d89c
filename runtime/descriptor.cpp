// SPDX-License-Identifier: Apache-2.0
// Descriptor sets of a command buffer: taken from pools that grow in chunks, shared by dispatches with equal bindings.
#include <algorithm>

#include "runtime/command_impl.h"

namespace pumice {
namespace {

constexpr uint32_t kFirstSets = 32, kMostSets = 1024;
constexpr uint32_t kDescriptorsPerSet = 6;  // of a pool, on average

}  // namespace

bool Commands::Impl::SetKey::operator==(const SetKey& other) const {
  return layout == other.layout && std::equal(bindings.begin(), bindings.end(), other.bindings.begin(),
                                              other.bindings.end(), [](const auto& a, const auto& b) {
                                                return a.buffer == b.buffer && a.offset == b.offset &&
                                                       a.range == b.range;
                                              });
}

size_t Commands::Impl::SetHash::operator()(const SetKey& of) const {
  size_t hash = std::hash<const void*>{}(of.layout);
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29); };
  for (const VkDescriptorBufferInfo& each : of.bindings) {
    mix(reinterpret_cast<uint64_t>(each.buffer));
    mix(each.offset);
    mix(each.range);
  }
  return hash;
}

VkDescriptorSet Commands::Impl::new_set(const Pipeline& pipeline) {
  const uint32_t needed = pipeline.shader->num_bindings;
  while (current_pool < pools.size() && (pools[current_pool].sets == 0 || pools[current_pool].descriptors < needed)) {
    ++current_pool;
  }
  if (current_pool == pools.size()) {
    const uint32_t count = pools.empty() ? kFirstSets : std::min(pools.back().max_sets * 2, kMostSets);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, std::max(count * kDescriptorsPerSet, needed)};
    VkDescriptorPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = count;
    info.poolSizeCount = 1;
    info.pPoolSizes = &size;
    Pool made{VK_NULL_HANDLE, count, size.descriptorCount, count, size.descriptorCount};
    pools.reserve(pools.size() + 1);
    VK(core.vk, Stage::encode, "descriptor pool", CreateDescriptorPool, core.device, &info, nullptr, &made.handle);
    pools.push_back(made);
  }
  Pool& from = pools[current_pool];
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = from.handle;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &pipeline.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VK(core.vk, Stage::encode, pipeline.shader->name, AllocateDescriptorSets, core.device, &info, &set);
  --from.sets;
  from.descriptors -= needed;
  return set;
}

VkDescriptorSet Commands::Impl::descriptor_set(const Pipeline& pipeline, std::span<const Slice> bindings) {
  const char* shader = pipeline.shader->name;
  const Features& features = core.features;
  key.layout = pipeline.set_layout;
  key.bindings.clear();
  for (const Slice& slice : bindings) {
    // Tensors are readable and writable up to the next multiple of 16 bytes, and kernels use that.
    const uint64_t range = slice.bytes == 0 ? 16 : (slice.bytes + 15) / 16 * 16;
    if (range > features.max_storage_bytes) {
      fail(Code::LimitExceeded, Stage::encode, shader, "%s: binding %zu takes %llu bytes; %s binds at most %llu",
           shader, key.bindings.size(), static_cast<unsigned long long>(range), core.vk.device.c_str(),
           static_cast<unsigned long long>(features.max_storage_bytes));
    }
    if (slice.buffer == VK_NULL_HANDLE || slice.offset % features.storage_alignment != 0) {
      fail(Code::Internal, Stage::encode, shader, "%s: binding %zu has no buffer or offset %llu, no multiple of %llu",
           shader, key.bindings.size(), static_cast<unsigned long long>(slice.offset),
           static_cast<unsigned long long>(features.storage_alignment));
    }
    key.bindings.push_back({slice.buffer, slice.offset, range});
  }
  if (const auto known = sets.find(key); known != sets.end()) return known->second;
  const VkDescriptorSet set = new_set(pipeline);
  std::vector<VkWriteDescriptorSet> writes(bindings.size());
  for (uint32_t i = 0; i < writes.size(); ++i) {
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &key.bindings[i];
  }
  core.vk.UpdateDescriptorSets(core.device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  sets.emplace(key, set);
  return set;
}

}  // namespace pumice
