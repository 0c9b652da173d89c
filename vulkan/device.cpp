// SPDX-License-Identifier: Apache-2.0
#include "vulkan/device.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/process_end.h"
#include "vulkan/command.h"
#include "vulkan/device_choice.h"
#include "vulkan/kernel_verdicts.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline.h"
#include "vulkan/probe.h"
#include "vulkan/queue.h"
#include "vulkan/tuned_kernels.h"

namespace pumice::engine {
namespace {

std::string or_environment(const std::string& text, const char* variable) {
  if (!text.empty()) return text;
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

// PUMICE_KERNEL=NAME is kernel=NAME; a kernel= of `features` comes after it and wins.
std::string with_kernel(const std::string& features) {
  const std::string kernel = or_environment("", "PUMICE_KERNEL");
  return kernel.empty() ? features : "kernel=" + kernel + "," + features;
}

using OpenKey = std::tuple<std::string, std::string, std::string>;

struct Open {
  std::mutex mutex;
  std::map<OpenKey, std::weak_ptr<Device>> devices;
  std::weak_ptr<Instance> instance;  // the one they were made from: another one starts an empty list
};

Open& open_devices() {
  static Open* open = new Open;
  return *open;
}

}  // namespace

struct Device::Impl {
  explicit Impl(std::shared_ptr<Core> the_core, const std::string& cache_dir)
      : core(std::move(the_core)), queue(*core), memory(core), pipelines(core, cache_dir) {}

  std::shared_ptr<Core> core;
  Queue queue;
  Memory memory;
  Pipelines pipelines;
  std::optional<TunedFile> tuned;
  std::optional<KernelVerdicts> verdicts;
};

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Device::~Device() = default;

const DeviceInfo& Device::info() const {
  return impl_->core->physical.info;
}
const Features& Device::features() const {
  return impl_->core->features;
}
const Vk& Device::vk() const {
  return impl_->core->vk;
}
Memory& Device::memory() {
  return impl_->memory;
}
Pipelines& Device::pipelines() {
  return impl_->pipelines;
}
bool Device::keep(const TunedKernels& kernels) {
  return impl_->tuned->save(kernels);
}
std::string Device::tuned_path() const {
  return impl_->tuned->path();
}
KernelVerdicts& Device::verdicts() {
  return *impl_->verdicts;
}
bool Device::is_lost() const {
  return impl_->core->lost;
}

Core& Device::core() {
  return *impl_->core;
}
Queue& Device::queue() {
  return impl_->queue;
}

void Device::run(const Commands& commands, Run& run) {
  pumice::engine::run(impl_->queue, commands.recorded(), run);
}

void Device::run(const Commands& commands, uint64_t timeout_ns) {
  Run once{.timeout_ns = timeout_ns};
  run(commands, once);
}

std::shared_ptr<Device> Device::open(const DeviceOptions& options) {
  const OpenKey key{or_environment(options.device, "PUMICE_DEVICE"),
                    with_kernel(or_environment(options.features, "PUMICE_FEATURES")),
                    or_environment(options.cache_dir, "PUMICE_CACHE_DIR")};
  Open& open = open_devices();
  std::lock_guard lock(open.mutex);
  std::string why;
  const auto instance = get_instance(&why);
  if (instance == nullptr) fail(Code::DeviceUnsupported, Stage::device, "device", "%s", why.c_str());
  if (open.instance.lock() != instance) open.devices.clear();
  open.instance = instance;
  std::erase_if(open.devices, [](const auto& each) { return each.second.expired(); });
  if (const auto known = open.devices.find(key); known != open.devices.end()) {
    if (auto device = known->second.lock(); device != nullptr && !device->is_lost()) return device;
  }
  const std::vector<Physical> found = list_physical(*instance);
  if (found.empty()) forget_instance();
  const Physical& physical = choose_device(found, std::get<0>(key));
  auto device = create(instance, physical, std::get<1>(key), std::get<2>(key));
  open.devices[key] = device;
  return device;
}

std::shared_ptr<Device> Device::create(std::shared_ptr<Instance> instance, const Physical& physical,
                                       const std::string& features, const std::string& cache_dir) {
  auto impl = std::make_unique<Impl>(create_core(std::move(instance), physical, features), cache_dir);
  std::shared_ptr<Device> device(new Device(std::move(impl)));
  wait_at_exit();
  uint64_t& bits = device->core().features.bits;
  // What the probe itself needs may be switched off. A driver compiles both probes at once, which takes half as long.
  const Features& found = device->features();
  constexpr Feature kProbed[] = {Feature::fragments, Feature::fragments_int8};
  std::vector<PipelineKey> probes;
  for (const Feature feature : kProbed) {
    if (!found.has(feature) || !may_have_fragments(found, feature)) bits &= ~bit(feature);
    if (found.has(feature)) probes.push_back(probe_pipeline(feature));
  }
  device->pipelines().prepare(probes);
  for (const Feature feature : kProbed) {
    if (found.has(feature) && !has_fragments(device, feature)) bits &= ~bit(feature);
  }
  TunedFile& tuned = device->impl_->tuned.emplace(physical, found, cache_dir);
  device->impl_->verdicts.emplace(physical, found, cache_dir);
  if (!found.untuned) device->core().features.tuned = tuned.load();
  return device;
}

}  // namespace pumice::engine
