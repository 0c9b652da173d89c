// SPDX-License-Identifier: Apache-2.0
// The descriptor sets of one command buffer: taken from pools that grow in chunks, shared by dispatches with equal
// bindings. Private to vulkan/.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "vulkan/core.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

constexpr VkDescriptorType descriptor_type(Binding kind) {
  return kind == Binding::buffer    ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
         : kind == Binding::texture ? VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE
                                    : VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
}

class DescriptorSets {
 public:
  explicit DescriptorSets(Core& core) : core_(core) {}
  // A set with these bindings: an earlier one where all are equal. Throws LimitExceeded for more bytes than the device
  // binds, Internal for a binding of the wrong kind.
  VkDescriptorSet get(const Pipeline& pipeline, std::span<const Slice> bindings);
  // All sets may be used again; the device must be done with them.
  void reset();
  void destroy() noexcept;

 private:
  // One chunk of descriptor sets; reset as a whole when recording begins again.
  struct Pool {
    VkDescriptorPool handle = VK_NULL_HANDLE;
    uint32_t max_sets = 0, sets = 0;                                             // sets: left
    std::array<uint32_t, kBindingKinds> max_descriptors = {}, descriptors = {};  // by Binding; left
  };
  // One set for equal bindings under one layout.
  struct SetKey {
    VkDescriptorSetLayout layout;
    std::vector<Slice> bindings;
    bool operator==(const SetKey& other) const;
  };
  struct SetHash {
    size_t operator()(const SetKey& of) const;
  };

  VkDescriptorSet allocate(const Pipeline& pipeline);
  void add_pool(const std::array<uint32_t, kBindingKinds>& needed);
  Slice checked(const Shader& shader, size_t index, const Slice& slice) const;

  Core& core_;
  std::vector<Pool> pools_;
  size_t current_ = 0;
  std::unordered_map<SetKey, VkDescriptorSet, SetHash> sets_;
  SetKey key_;  // kept for its memory
};

}  // namespace pumice::engine
