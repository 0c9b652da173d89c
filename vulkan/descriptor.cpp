// SPDX-License-Identifier: Apache-2.0
#include "vulkan/descriptor.h"

#include <algorithm>

#include "base/error.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kFirstSets = 32, kMostSets = 1024;
constexpr uint32_t kBuffersPerSet = 6, kImagesPerSet = 2;  // of a pool, on average

}  // namespace

bool DescriptorSets::SetKey::operator==(const SetKey& other) const {
  return layout == other.layout && std::equal(bindings.begin(), bindings.end(), other.bindings.begin(),
                                              other.bindings.end(), [](const auto& a, const auto& b) {
                                                return a.buffer == b.buffer && a.offset == b.offset &&
                                                       a.bytes == b.bytes && a.view == b.view;
                                              });
}

size_t DescriptorSets::SetHash::operator()(const SetKey& of) const {
  size_t hash = std::hash<const void*>{}(of.layout);
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull + (hash >> 29); };
  for (const Slice& each : of.bindings) {
    mix(reinterpret_cast<uint64_t>(each.buffer) ^ reinterpret_cast<uint64_t>(each.view));
    mix(each.offset);
    mix(each.bytes);
  }
  return hash;
}

VkDescriptorSet DescriptorSets::allocate(const Pipeline& pipeline) {
  std::array<uint32_t, kBindingKinds> needed{};
  for (uint32_t b = 0; b < pipeline.shader->num_bindings; ++b)
    ++needed[static_cast<size_t>(binding_kind(*pipeline.shader, b))];
  const auto has_room = [&](const Pool& each) {
    bool room = each.sets > 0;
    for (size_t kind = 0; kind < kBindingKinds; ++kind) room = room && each.descriptors[kind] >= needed[kind];
    return room;
  };
  while (current_ < pools_.size() && !has_room(pools_[current_])) ++current_;
  if (current_ == pools_.size()) add_pool(needed);
  Pool& from = pools_[current_];
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = from.handle;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &pipeline.set_layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  VK(core_.vk, Stage::encode, pipeline.shader->name, AllocateDescriptorSets, core_.device, &info, &set);
  --from.sets;
  for (size_t kind = 0; kind < kBindingKinds; ++kind) from.descriptors[kind] -= needed[kind];
  return set;
}

// A pool has room for images only where the set that it is made for has some.
void DescriptorSets::add_pool(const std::array<uint32_t, kBindingKinds>& needed) {
  Pool pool;
  pool.max_sets = pool.sets = pools_.empty() ? kFirstSets : std::min(pools_.back().max_sets * 2, kMostSets);
  std::vector<VkDescriptorPoolSize> sizes;
  for (size_t kind = 0; kind < kBindingKinds; ++kind) {
    if (kind != 0 && needed[kind] == 0) continue;
    const uint32_t each = kind == 0 ? kBuffersPerSet : kImagesPerSet;
    pool.max_descriptors[kind] = pool.descriptors[kind] = std::max(pool.max_sets * each, needed[kind]);
    sizes.push_back({descriptor_type(static_cast<Binding>(kind)), pool.max_descriptors[kind]});
  }
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = pool.max_sets;
  info.poolSizeCount = static_cast<uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  pools_.reserve(pools_.size() + 1);
  VK(core_.vk, Stage::encode, "descriptor pool", CreateDescriptorPool, core_.device, &info, nullptr, &pool.handle);
  pools_.push_back(pool);
}

// Checks a binding against its kind and the device's limits. Tensors are readable and writable up to the next multiple
// of 16 bytes, and kernels use that.
Slice DescriptorSets::checked(const Shader& shader, size_t index, const Slice& slice) const {
  const Features& features = core_.features;
  if (binding_kind(shader, index) != Binding::buffer) {
    if (slice.view == VK_NULL_HANDLE)
      fail(Code::Internal, Stage::encode, shader.name, "%s: binding %zu is not an image", shader.name, index);
    return slice;
  }
  const uint64_t range = slice.bytes == 0 ? 16 : (slice.bytes + 15) / 16 * 16;
  if (range > features.max_storage_bytes) {
    fail(Code::LimitExceeded, Stage::encode, shader.name, "%s: binding %zu takes %llu bytes; %s binds at most %llu",
         shader.name, index, static_cast<unsigned long long>(range), core_.vk.device.c_str(),
         static_cast<unsigned long long>(features.max_storage_bytes));
  }
  if (slice.buffer == VK_NULL_HANDLE || slice.offset % features.storage_alignment != 0) {
    fail(Code::Internal, Stage::encode, shader.name,
         "%s: binding %zu has no buffer, or offset %llu, which is not a multiple of %llu", shader.name, index,
         static_cast<unsigned long long>(slice.offset), static_cast<unsigned long long>(features.storage_alignment));
  }
  return {slice.buffer, slice.offset, range};
}

VkDescriptorSet DescriptorSets::get(const Pipeline& pipeline, std::span<const Slice> bindings) {
  const Shader& shader = *pipeline.shader;
  key_.layout = pipeline.set_layout;
  key_.bindings.clear();
  for (const Slice& slice : bindings) key_.bindings.push_back(checked(shader, key_.bindings.size(), slice));
  if (const auto known = sets_.find(key_); known != sets_.end()) return known->second;
  const VkDescriptorSet set = allocate(pipeline);
  std::vector<VkWriteDescriptorSet> writes(bindings.size());
  std::array<VkDescriptorBufferInfo, kMaxBindings> buffers;
  std::array<VkDescriptorImageInfo, kMaxBindings> images;
  for (uint32_t i = 0; i < writes.size(); ++i) {
    const Slice& slice = key_.bindings[i];
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
  core_.vk.UpdateDescriptorSets(core_.device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  sets_.emplace(key_, set);
  return set;
}

void DescriptorSets::reset() {
  sets_.clear();  // a handle of a destroyed buffer may come again for another buffer
  for (Pool& each : pools_) {
    VK(core_.vk, Stage::encode, "descriptor pool", ResetDescriptorPool, core_.device, each.handle, 0);
    each.sets = each.max_sets;
    each.descriptors = each.max_descriptors;
  }
  current_ = 0;
}

void DescriptorSets::destroy() noexcept {
  for (const Pool& each : pools_) core_.vk.DestroyDescriptorPool(core_.device, each.handle, nullptr);
}

}  // namespace pumice::engine
