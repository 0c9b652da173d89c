// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "vulkan/command.h"
#include "vulkan/core.h"

namespace pumice::engine {

struct Commands::Impl {
  enum class State : uint8_t { empty, recording, recorded };

  explicit Impl(std::shared_ptr<Device> device);
  ~Impl();
  void release() noexcept;
  VkDescriptorSet descriptor_set(const Pipeline& pipeline, std::span<const Slice> bindings);
  VkDescriptorSet new_set(const Pipeline& pipeline);
  void add_pool(const std::array<uint32_t, kBindingKinds>& needed);
  Slice bound(const Shader& shader, size_t index, const Slice& slice) const;
  void reset();
  void must_record() const;

  // A chunk of descriptor sets; reset as a whole when recording begins again.
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

  std::shared_ptr<Device> device;
  Core& core;
  State state = State::empty;
  Submit submit;
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<Pool> pools;
  size_t current_pool = 0;
  std::unordered_map<SetKey, VkDescriptorSet, SetHash> sets;
  SetKey key;  // kept for its memory
  VkPipeline bound_pipeline = VK_NULL_HANDLE;
  VkQueryPool queries = VK_NULL_HANDLE;
  uint32_t num_queries = 0, max_queries = 0;
};

}  // namespace pumice::engine
