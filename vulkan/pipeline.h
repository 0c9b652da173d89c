// SPDX-License-Identifier: Apache-2.0
// Compute pipelines: made on demand, several at once, kept on disk between processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "glsl/shader.h"

typedef struct VkPipeline_T* VkPipeline;
typedef struct VkPipelineLayout_T* VkPipelineLayout;
typedef struct VkDescriptorSetLayout_T* VkDescriptorSetLayout;

namespace pumice::engine {

struct Core;  // vulkan/core.h

// `spec`: values of specialization constants 0, 1, ...; [0] is local_size_x.
// `subgroup_size`: 0 = the driver's choice, else required (needs subgroup_size_control).
// `in_pieces`: for dispatches that begin at another workgroup than 0, see Commands::dispatch.
struct PipelineKey {
  const Shader* shader = nullptr;
  std::vector<uint32_t> spec;
  uint32_t subgroup_size = 0;
  bool in_pieces = false;
  bool operator==(const PipelineKey&) const = default;
};
struct PipelineKeyHash {
  size_t operator()(const PipelineKey& key) const;
};

struct Pipeline {
  VkPipeline handle;
  VkPipelineLayout layout;
  VkDescriptorSetLayout set_layout;  // one set, the shader's bindings
  const Shader* shader;
  bool in_pieces = false;  // its dispatches may begin at another workgroup than 0
};

class Pipelines {
 public:
  // Makes those that are missing, on several threads; what another thread makes now is waited for. Meanwhile get() and
  // prepare() of other pipelines go on. Throws DeviceUnsupported where the device lacks a feature that the shader
  // needs, Timeout between two pipelines; those that were made are kept.
  void prepare(std::span<const PipelineKey> keys, const Deadline& deadline = {});
  // Begins to make those that are missing on other threads, and returns. What fails is said by prepare() or get().
  void begin(std::vector<PipelineKey> keys) noexcept;
  // Likewise those that `keys` returns, which is called on another thread and must not use the device: what may be
  // needed later. Each is begun only while fewer threads make pipelines than there are cores; what fails is left. The
  // deadline that `keys` gets is over after a second, or when the device is closed: what it throws ends this.
  void begin_idle(std::function<std::vector<PipelineKey>(const Deadline&)> keys) noexcept;
  // Makes it if missing. The reference stays valid as long as the device.
  const Pipeline& get(const PipelineKey& key);
  // Writes the cache file when something new was made (temporary name, then rename). Never throws: one warning.
  void save() noexcept;
  uint32_t created() const;  // pipelines created in this process so far

  // `cache_dir` as in DeviceOptions.
  Pipelines(std::shared_ptr<Core> core, const std::string& cache_dir);
  ~Pipelines();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
