// SPDX-License-Identifier: Apache-2.0
// Descriptor sets of a command buffer: taken from pools that grow in chunks, shared by dispatches with equal bindings.
#include <algorithm>

#include "vulkan/command_impl.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kFirstSets = 32, kMostSets = 1024;
constexpr uint32_t kBuffersPerSet = 6, kImagesPerSet = 2;  // of a pool, on average

}  // namespace

bool Commands::Impl::SetKey::operator==(const SetKey& other) const {
  return layout == other.layout && std::equal(bindings.begin(), bindings.end(), other.bindings.begin(),
                                              other.bindings.end(), [](const auto& a, const auto& b) {
                                                return a.buffer == b.buffer && a.offset == b.offset &&
                                                       a.bytes == b.bytes && a.view == b.view;
                                              });
}

size_t Commands::Impl::SetHash::operator()(const SetKey& of) const {
  size_t hash = std::hash<const void*>{}(of.layout);
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29); };
  for (const Slice& each : of.bindings) {
    mix(reinterpret_cast<uint64_t>(each.buffer) ^ reinterpret_cast<uint64_t>(each.view));
    mix(each.offset);
    mix(each.bytes);
  }
  return hash;
}

VkDescriptorSet Commands::Impl::new_set(const Pipeline& pipeline) {
  std::array<uint32_t, kBindingKinds> needed{};
  for (uint32_t b = 0; b < pipeline.shader->num_bindings; ++b)
    ++needed[static_cast<size_t>(binding_kind(*pipeline.shader, b))];
  const auto has_room = [&](const Pool& each) {
    bool room = each.sets > 0;
    for (size_t kind = 0; kind < kBindingKinds; ++kind) room = room && each.descriptors[kind] >= needed[kind];
    return room;
  };
  while (current_pool < pools.size() && !has_room(pools[current_pool])) ++current_pool;
  if (current_pool == pools.size()) add_pool(needed);
  Pool& from = pools[current_pool];
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = from.handle;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &pipeline.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VK(core.vk, Stage::encode, pipeline.shader->name, AllocateDescriptorSets, core.device, &info, &set);
  --from.sets;
  for (size_t kind = 0; kind < kBindingKinds; ++kind) from.descriptors[kind] -= needed[kind];
  return set;
}

// With images only where the set that asked for it has some.
void Commands::Impl::add_pool(const std::array<uint32_t, kBindingKinds>& needed) {
  Pool made;
  made.max_sets = made.sets = pools.empty() ? kFirstSets : std::min(pools.back().max_sets * 2, kMostSets);
  std::vector<VkDescriptorPoolSize> sizes;
  for (size_t kind = 0; kind < kBindingKinds; ++kind) {
    if (kind != 0 && needed[kind] == 0) continue;
    const uint32_t each = kind == 0 ? kBuffersPerSet : kImagesPerSet;
    made.max_descriptors[kind] = made.descriptors[kind] = std::max(made.max_sets * each, needed[kind]);
    sizes.push_back({descriptor_type(static_cast<Binding>(kind)), made.max_descriptors[kind]});
  }
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = made.max_sets;
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  pools.reserve(pools.size() + 1);
  VK(core.vk, Stage::encode, "descriptor pool", CreateDescriptorPool, core.device, &info, nullptr, &made.handle);
  pools.push_back(made);
}

// Checks a binding against its kind and the device's limits. Tensors are readable and writable up to the next multiple
// of 16 bytes, and kernels use that.
Slice Commands::Impl::bound(const Shader& shader, size_t index, const Slice& slice) const {
  const Features& features = core.features;
  if (binding_kind(shader, index) != Binding::buffer) {
    if (slice.view == VK_NULL_HANDLE)
      fail(Code::Internal, Stage::encode, shader.name, "%s: binding %zu is no image", shader.name, index);
    return slice;
  }
  const uint64_t range = slice.bytes == 0 ? 16 : (slice.bytes + 15) / 16 * 16;
  if (range > features.max_storage_bytes) {
    fail(Code::LimitExceeded, Stage::encode, shader.name, "%s: binding %zu takes %llu bytes; %s binds at most %llu",
         shader.name, index, static_cast<unsigned long long>(range), core.vk.device.c_str(),
         static_cast<unsigned long long>(features.max_storage_bytes));
  }
  if (slice.buffer == VK_NULL_HANDLE || slice.offset % features.storage_alignment != 0) {
    fail(Code::Internal, Stage::encode, shader.name,
         "%s: binding %zu has no buffer or offset %llu, no multiple of %llu", shader.name, index,
         static_cast<unsigned long long>(slice.offset), static_cast<unsigned long long>(features.storage_alignment));
  }
  return {slice.buffer, slice.offset, range};
}

VkDescriptorSet Commands::Impl::descriptor_set(const Pipeline& pipeline, std::span<const Slice> bindings) {
  const Shader& shader = *pipeline.shader;
  key.layout = pipeline.set_layout;
  key.bindings.clear();
  for (const Slice& slice : bindings) key.bindings.push_back(bound(shader, key.bindings.size(), slice));
  if (const auto known = sets.find(key); known != sets.end()) return known->second;
  const VkDescriptorSet set = new_set(pipeline);
  std::vector<VkWriteDescriptorSet> writes(bindings.size());
  std::array<VkDescriptorBufferInfo, kMaxBindings> buffers;
  std::array<VkDescriptorImageInfo, kMaxBindings> images;
  for (uint32_t i = 0; i < writes.size(); ++i) {
    const Slice& slice = key.bindings[i];
    buffers[i] = {slice.buffer, slice.offset, slice.bytes};
    images[i] = {VK_NULL_HANDLE, slice.view, VK_IMAGE_LAYOUT_GENERAL};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = descriptor_type(binding_kind(shader, i));
    writes[i].pBufferInfo = &buffers[i];
    writes[i].pImageInfo = &images[i];
  }
  core.vk.UpdateDescriptorSets(core.device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  sets.emplace(key, set);
  return set;
}

}  // namespace pumice::engine
