// SPDX-License-Identifier: Apache-2.0
#include "vulkan/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/append_line.h"
#include "base/log.h"
#include "base/on_threads.h"
#include "base/process_end.h"
#include "glsl/spirv.h"
#include "vulkan/cache_file.h"
#include "vulkan/descriptor.h"
#include "vulkan/pipeline_log.h"
#include "vulkan/runnable.h"

namespace pumice::engine {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMaxThreads = 16;
constexpr double kForever = 1e9;  // seconds

size_t cores() {
  return std::max(std::thread::hardware_concurrency(), 1u);
}

size_t threads_for(size_t pipelines) {
  return std::min({pipelines, cores(), kMaxThreads});
}

struct Layouts {
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  VkPipelineLayout pipeline = VK_NULL_HANDLE;
};

}  // namespace

size_t PipelineKeyHash::operator()(const PipelineKey& key) const {
  size_t hash = std::hash<const void*>{}(key.shader) ^ key.subgroup_size ^ (key.in_pieces ? 1u << 31 : 0u);
  for (const uint32_t each : key.spec) hash = (hash ^ each) * 0x9e3779b97f4a7c15ull + (hash >> 29);
  return hash;
}

struct Pipelines::Impl {
  Impl(std::shared_ptr<Core> the_core, const std::string& cache_dir)
      : core(std::move(the_core)), file(kPipelineCache, core->physical, cache_dir) {
    const std::vector<uint8_t> body = file.load();
    VkPipelineCacheCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
    info.initialDataSize = body.size();
    info.pInitialData = body.data();
    VkResult result = core->vk.CreatePipelineCache(core->device, &info, nullptr, &cache);
    saved_bytes = body.size();
    if (result != VK_SUCCESS && !body.empty()) {  // the driver refuses it: start with an empty one
      info.initialDataSize = saved_bytes = 0;
      result = core->vk.CreatePipelineCache(core->device, &info, nullptr, &cache);
    }
    must(result, "vkCreatePipelineCache", "pipeline cache", Stage::cache, core->vk);
  }
  ~Impl();
  const Layouts& layouts(const Shader& shader);
  void create(const PipelineKey& key, SpirvBlocks& blocks, Pipeline& out) const;
  std::vector<PipelineKey> claim(std::span<const PipelineKey> keys);
  void make(const std::vector<PipelineKey>& keys, const Deadline& deadline, std::unique_lock<std::mutex>& lock);
  void create_all(std::span<const PipelineKey> keys, std::span<Pipeline> out, const Deadline& deadline);
  void keep(const PipelineKey& key, const Pipeline& pipeline);
  void begin(std::vector<PipelineKey> keys);
  Deadline until_closed(double seconds);
  void begin_idle(const std::function<std::vector<PipelineKey>(const Deadline&)>& keys);
  void make_idle(std::span<const PipelineKey> keys);
  void go_on(std::function<void()> work);
  void prepare(std::span<const PipelineKey> keys, const Deadline& deadline, std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Core> core;
  CacheFile file;
  VkPipelineCache cache = VK_NULL_HANDLE;
  size_t saved_bytes = 0;
  bool changed = false;
  std::mutex mutex;  // of what follows; not held while pipelines are made
  std::condition_variable made;
  std::unordered_set<PipelineKey, PipelineKeyHash> in_the_making;  // so that two sessions do not make the same ones
  std::unordered_map<PipelineKey, std::unique_ptr<Pipeline>, PipelineKeyHash> pipelines;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, Layouts> all_layouts;  // by bindings, their kinds and push bytes
  std::atomic<uint32_t> created{0};
  std::atomic<size_t> making{0};  // threads that do
  std::atomic<bool> closing{false};
  std::vector<std::future<void>> begun;
};

Pipelines::Impl::~Impl() {
  if (core->must_leak()) {
    new std::vector(std::move(begun));  // of a process that was forked, no thread would come to their end
    return;
  }
  const Vk& vk = core->vk;
  for (const auto& [key, pipeline] : pipelines) vk.DestroyPipeline(core->device, pipeline->handle, nullptr);
  for (const auto& [key, layout] : all_layouts) {
    vk.DestroyPipelineLayout(core->device, layout.pipeline, nullptr);
    vk.DestroyDescriptorSetLayout(core->device, layout.set, nullptr);
  }
  vk.DestroyPipelineCache(core->device, cache, nullptr);
}

const Layouts& Pipelines::Impl::layouts(const Shader& shader) {
  Layouts& out = all_layouts[{shader.num_bindings, shader.kinds, shader.push_bytes}];
  if (out.set == VK_NULL_HANDLE) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(shader.num_bindings);
    for (uint32_t i = 0; i < shader.num_bindings; ++i) {
      bindings[i] = {i, descriptor_type(binding_kind(shader, i)), 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    }
    VkDescriptorSetLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    info.bindingCount = shader.num_bindings;
    info.pBindings = bindings.data();
    VK(core->vk, Stage::encode, shader.name, CreateDescriptorSetLayout, core->device, &info, nullptr, &out.set);
  }
  if (out.pipeline == VK_NULL_HANDLE) {
    const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, shader.push_bytes};
    VkPipelineLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = &out.set;
    info.pushConstantRangeCount = shader.push_bytes > 0 ? 1 : 0;
    info.pPushConstantRanges = &push;
    VK(core->vk, Stage::encode, shader.name, CreatePipelineLayout, core->device, &info, nullptr, &out.pipeline);
  }
  return out;
}

void Pipelines::Impl::create(const PipelineKey& key, SpirvBlocks& blocks, Pipeline& out) const {
  const Vk& vk = core->vk;
  const Shader& shader = *key.shader;
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  const std::span<const uint32_t> code = blocks.words(shader);
  module_info.codeSize = code.size_bytes();
  module_info.pCode = code.data();
  // NVIDIA's caches (seen with driver 580.159.04) take a pipeline with the flag below for the same one without it, and
  // then the first workgroup of a dispatch is always 0. Its generator's version, which no compiler reads, tells them
  // apart.
  std::vector<uint32_t> words;
  if (key.in_pieces) {
    constexpr size_t kGenerator = 2;
    words.assign(code.begin(), code.end());
    words[kGenerator] ^= 1;
    module_info.pCode = words.data();
  }
  VkShaderModule module = VK_NULL_HANDLE;
  VK(vk, Stage::encode, shader.name, CreateShaderModule, core->device, &module_info, nullptr, &module);

  std::vector<VkSpecializationMapEntry> entries;
  for (uint32_t i = 0; i < key.spec.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo spec{static_cast<uint32_t>(entries.size()), entries.data(), entries.size() * 4,
                                  key.spec.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = key.subgroup_size != 0 ? key.subgroup_size : core->required_subgroup;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  if (key.in_pieces) info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  info.layout = out.layout;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &spec;
  if (subgroup.requiredSubgroupSize != 0) {
    info.stage.pNext = &subgroup;
    if (core->physical.full_subgroups && !key.spec.empty() && key.spec[0] % subgroup.requiredSubgroupSize == 0) {
      info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
  }
  VkPipelineRobustnessCreateInfoEXT robustness{};
  robustness.sType = VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT;
  robustness.storageBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DISABLED_EXT;
  // Cooperative matrices are loaded and stored outside of robust access anyway (cooperativeMatrixRobustBufferAccess),
  // and the bounds of their kernels are tested with guards (docs/testing.md): there it would only cost.
  const bool matrices = (shader.features & bit(Feature::coopmat)) != 0;
  if (matrices && core->features.has(Feature::robust) && core->physical.pipeline_robustness) info.pNext = &robustness;
  if (core->physical.pipeline_statistics) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkPipeline handle = VK_NULL_HANDLE;
  const double begin = log_begun(key);
  const VkResult result = vk.CreateComputePipelines(core->device, cache, 1, &info, nullptr, &handle);
  const double ms = processor_ms() - begin;
  vk.DestroyShaderModule(core->device, module, nullptr);
  must(result, "vkCreateComputePipelines", shader.name, Stage::encode, vk);
  out.handle = handle;
  out.in_pieces = key.in_pieces;
  if (logs_pipelines()) log_pipeline(*core, key, handle, ms);
  append_line("PUMICE_SHADER_LOG", shader.name);  // test/cli/test_kernel.py: which variants no test runs
}

void Pipelines::Impl::keep(const PipelineKey& key, const Pipeline& pipeline) {
  std::lock_guard lock(mutex);
  pipelines.emplace(key, std::make_unique<Pipeline>(pipeline));
  in_the_making.erase(key);
  ++created;
  changed = true;
  made.notify_all();
}

void Pipelines::Impl::create_all(std::span<const PipelineKey> keys, std::span<Pipeline> out, const Deadline& deadline) {
  SpirvBlocks blocks;
  std::atomic<size_t> next{0}, left{threads_for(keys.size())};
  std::exception_ptr first;
  std::mutex first_mutex;
  const auto work = [&] {
    for (size_t i = next++; i < keys.size(); i = next++) {
      try {
        deadline.require(Stage::encode, "compiling a pipeline");
        create(keys[i], blocks, out[i]);
        keep(keys[i], out[i]);
      } catch (...) {
        std::lock_guard lock(first_mutex);
        if (!first) first = std::current_exception();
        next = keys.size();
      }
    }
    --left;
    --making;
  };
  on_threads(left, work);
  making -= left;  // that could not be started
  if (first) std::rethrow_exception(first);
}

// Those of `keys` that no thread has made or makes. They are this thread's to make.
std::vector<PipelineKey> Pipelines::Impl::claim(std::span<const PipelineKey> keys) {
  for (const PipelineKey& key : keys) {
    if (!pipelines.contains(key)) require_runnable(core->features, core->vk.device, key);
  }
  std::vector<PipelineKey> claimed;
  try {
    for (const PipelineKey& key : keys) {
      if (pipelines.contains(key) || in_the_making.contains(key)) continue;
      claimed.push_back(key);
      in_the_making.insert(key);
    }
  } catch (...) {
    for (const PipelineKey& key : claimed) in_the_making.erase(key);
    throw;
  }
  return claimed;
}

// What was made is kept, even where others failed.
void Pipelines::Impl::make(const std::vector<PipelineKey>& keys, const Deadline& deadline,
                           std::unique_lock<std::mutex>& lock) {
  std::exception_ptr error;
  try {
    std::vector<Pipeline> out(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const Layouts& both = layouts(*keys[i].shader);
      out[i] = {VK_NULL_HANDLE, both.pipeline, both.set, keys[i].shader};
    }
    making += threads_for(keys.size());
    lock.unlock();
    create_all(keys, out, deadline);
  } catch (...) {
    error = std::current_exception();
  }
  if (!lock.owns_lock()) lock.lock();
  for (const PipelineKey& key : keys) in_the_making.erase(key);
  made.notify_all();
  if (error) std::rethrow_exception(error);
}

// A pipeline that another thread failed to make is tried again here: its error is that thread's.
void Pipelines::Impl::prepare(std::span<const PipelineKey> keys, const Deadline& deadline,
                              std::unique_lock<std::mutex>& lock) {
  const auto is_missing = [&](const PipelineKey& key) { return !pipelines.contains(key); };
  while (std::any_of(keys.begin(), keys.end(), is_missing)) {
    deadline.require(Stage::encode, "compiling a pipeline");
    const std::vector<PipelineKey> claimed = claim(keys);
    if (claimed.empty()) {
      made.wait_for(lock, std::chrono::milliseconds(100));  // then the deadline is looked at
    } else {
      make(claimed, deadline, lock);
    }
  }
}

Deadline Pipelines::Impl::until_closed(double seconds) {
  return Deadline(seconds, [this] {
    if (closing) fail(Code::Cancelled, Stage::encode, "pipeline", "the device is closed");
  });
}

void Pipelines::Impl::begin(std::vector<PipelineKey> keys) {
  go_on([this, open = until_closed(kForever), keys = std::move(keys)] {
    const Inside inside;
    std::unique_lock working(mutex);
    prepare(keys, open, working);  // an error stays in the future: prepare() has it again where they are needed
  });
}

// In another thread; the device waits for its end.
void Pipelines::Impl::go_on(std::function<void()> work) {
  std::lock_guard lock(mutex);
  std::erase_if(begun, [](const std::future<void>& each) { return each.wait_for(0s) == std::future_status::ready; });
  begun.push_back(std::async(std::launch::async, std::move(work)));
}

void Pipelines::Impl::begin_idle(const std::function<std::vector<PipelineKey>(const Deadline&)>& keys) {
  constexpr double kMostSeconds = 1;
  go_on([this, keys] {
    std::optional<Inside> inside(std::in_place);
    const std::vector<PipelineKey> each = keys(until_closed(kMostSeconds));
    inside.reset();
    make_idle(each);
  });
}

// A pipeline is claimed when its turn has come: until then, whoever needs it makes it. The end of the process waits for
// those that are being made, and no other is begun then.
void Pipelines::Impl::make_idle(std::span<const PipelineKey> keys) {
  std::atomic<size_t> next{0};
  const size_t most = std::max(cores() / 4, size_t{1});  // those that are waited for get the others at once
  on_threads(std::min(threads_for(keys.size()), most), [&] {
    std::unique_lock lock(mutex);
    for (size_t i = next++; i < keys.size(); i = next++) {
      while (making >= cores() && !closing) made.wait_for(lock, 10ms);
      if (closing) return;
      try {
        const Inside inside;
        if (const std::vector<PipelineKey> claimed = claim({&keys[i], 1}); !claimed.empty()) make(claimed, {}, lock);
      } catch (const std::exception& error) {
        log(LogLevel::debug, "a pipeline made ahead: %s", error.what());
      }
    }
  });
}

Pipelines::Pipelines(std::shared_ptr<Core> core, const std::string& cache_dir)
    : impl_(std::make_unique<Impl>(std::move(core), cache_dir)) {}
Pipelines::~Pipelines() {
  impl_->closing = true;
  if (!impl_->core->must_leak()) impl_->begun.clear();  // which waits for them
  save();
}

void Pipelines::begin(std::vector<PipelineKey> keys) noexcept try {
  impl_->begin(std::move(keys));
} catch (const std::exception& error) {
  log(LogLevel::debug, "pipelines are made when they are needed: %s", error.what());
}

void Pipelines::begin_idle(std::function<std::vector<PipelineKey>(const Deadline&)> keys) noexcept try {
  impl_->begin_idle(keys);
} catch (const std::exception& error) {
  log(LogLevel::debug, "no pipelines are made ahead: %s", error.what());
}

void Pipelines::prepare(std::span<const PipelineKey> keys, const Deadline& deadline) {
  std::unique_lock lock(impl_->mutex);
  impl_->prepare(keys, deadline, lock);
}

const Pipeline& Pipelines::get(const PipelineKey& key) {
  std::unique_lock lock(impl_->mutex);
  impl_->prepare({&key, 1}, {}, lock);
  return *impl_->pipelines.at(key);
}

uint32_t Pipelines::created() const {
  return impl_->created;
}

void Pipelines::save() noexcept try {
  Impl& self = *impl_;
  if (self.core->process != getpid()) return;  // a thread that was not forked may have the mutex
  std::lock_guard lock(self.mutex);
  if (!self.changed || self.file.path().empty() || self.core->lost) return;
  const Vk& vk = self.core->vk;
  size_t bytes = 0;
  if (vk.GetPipelineCacheData(self.core->device, self.cache, &bytes, nullptr) != VK_SUCCESS) return;
  self.changed = false;
  if (bytes <= self.saved_bytes) return;  // a cache only grows: everything came from the file
  std::vector<uint8_t> body(bytes);
  if (vk.GetPipelineCacheData(self.core->device, self.cache, &bytes, body.data()) != VK_SUCCESS) return;
  body.resize(bytes);
  self.file.save(body);
  self.saved_bytes = bytes;
} catch (...) {
  log(LogLevel::warning, "pipeline cache: out of memory; going on without");
}

}  // namespace pumice::engine
