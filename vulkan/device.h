// SPDX-License-Identifier: Apache-2.0
// One opened Vulkan device: its features and limits, its queue, its allocator, its pipelines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "vulkan/features.h"
#include "vulkan/run.h"

namespace pumice::engine {

struct DeviceInfo {
  uint32_t index = 0;
  std::string name, driver, driver_version, kind;  // kind: "discrete", "integrated", "virtual", "cpu", "other"
  std::string uuid;                                // 32 hex digits
  uint32_t api_version = 0;
  uint32_t vendor_id = 0, device_id = 0;
  uint32_t driver_id = 0, driver_number = 0;  // VkDriverId; its version as the driver counts, in its own packing
  uint64_t memory_bytes = 0;                  // of the device-local heaps
  uint64_t heap_bytes = 0;                    // of the largest of them
  Features features;                          // as the driver says; known bugs (vulkan/driver_bugs.h) are not taken off
};

struct DeviceOptions {
  std::string device;    // index, part of the name, or UUID; "" = PUMICE_DEVICE, else the best GPU (never a CPU driver)
  std::string features;  // see apply(); "" = PUMICE_FEATURES; where it forces no kernel, PUMICE_KERNEL does
  std::string cache_dir;  // the cache's folder; "" = PUMICE_CACHE_DIR, else XDG_CACHE_HOME/pumice; "off" = none
};

class Queue;           // vulkan/queue.h
struct Core;           // vulkan/core.h
struct Instance;       // vulkan/instance.h
struct Physical;       // vulkan/physical.h
struct Vk;             // vulkan/functions.h: the table through which every Vulkan call goes
class Pipelines;       // vulkan/pipeline.h
class Memory;          // vulkan/memory.h
class Commands;        // vulkan/command.h
class KernelVerdicts;  // vulkan/kernel_verdicts.h

class Device {
 public:
  // Throws DeviceUnsupported with what was found. Devices with equal options share one object while any user is alive.
  static std::shared_ptr<Device> open(const DeviceOptions& options);
  ~Device();

  const DeviceInfo& info() const;
  const Features& features() const;  // after `features` took things away
  const Vk& vk() const;
  Memory& memory();
  Pipelines& pipelines();

  // Keeps them for devices that are opened from now on, in place of those that the file has. False where it cannot be
  // written, which the log explains.
  bool keep(const TunedKernels& kernels);
  std::string tuned_path() const;  // of that file; "": nothing is kept

  KernelVerdicts& verdicts();

  // A lost device stays lost; open() then makes a new one.
  bool is_lost() const;

  // Submits and waits; the queue is locked inside, so sessions on several threads may call it. Errors: vulkan/run.h.
  // Releases nothing.
  void run(const Commands& commands, Run& run);
  void run(const Commands& commands, uint64_t timeout_ns = 0);

  // ---- for vulkan/ alone ----

  Core& core();
  Queue& queue();

 private:
  struct Impl;
  explicit Device(std::unique_ptr<Impl> impl);
  static std::shared_ptr<Device> create(std::shared_ptr<Instance> instance, const Physical& physical,
                                        const std::string& features, const std::string& cache_dir);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
