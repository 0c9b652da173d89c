// SPDX-License-Identifier: Apache-2.0
// One opened Vulkan device: its features and limits, its queue, its allocator, its pipelines.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "glsl/shader.h"

namespace pumice::engine {

// A cooperative matrix product of a subgroup: m x k times k x n.
struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};
using MatrixShapes = std::array<MatrixShape, 8>;  // the largest first; m = 0 ends it

// Texels of images: four elements each.
enum class ImageFormat : uint8_t { rgba32f, rgba16f, rgba32i, rgba8i, rgba8u, rgba32u };
inline constexpr uint32_t kImageFormats = 6;

// What values are on the device, whatever the file says of them.
enum class StorageChoice : uint8_t { as_exported, buffers, textures };

// What a kernel may be chosen by. Plain data, so that selection is tested without a GPU.
struct Features {
  uint64_t bits = 0;  // of Feature
  uint32_t subgroup_size = 1, min_subgroup_size = 1, max_subgroup_size = 1;
  uint32_t max_invocations = 128;  // of one workgroup, x also
  uint32_t max_shared_bytes = 16384;
  uint32_t max_push_bytes = 128;
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint64_t max_storage_bytes = 1ull << 27;  // of one binding
  uint64_t max_allocation_bytes = 1ull << 30;
  uint64_t storage_alignment = 256;                  // of a binding's offset
  MatrixShapes matrix_f16{};                         // of f16 and f16, summed in f32
  MatrixShapes matrix_s8{};                          // of s8 and s8, summed in s32
  uint32_t max_image_3d = 256, max_image_2d = 4096;  // texels along each axis
  uint32_t image_formats =
      (1u << kImageFormats) - 1;  // bit f: ImageFormat f may be read and written in a 2D and 3D image
  StorageChoice storage = StorageChoice::as_exported;
  bool cpu = false;         // invocations run on the host's processor: few workgroups fill it
  std::string kernel = {};  // of matrix products, forced by name; "": the best one is picked
  bool has(Feature feature) const { return bits & bit(feature); }
  bool runs(const Shader& shader) const { return (shader.features & ~bits) == 0; }
};

// The poorest device Pumice runs on: every limit at Vulkan 1.1's minimum, nothing optional.
Features baseline_features();

// `text`: "-coopmat,-int_dot" takes away, "none" takes everything optional away, "+x" after "none" gives back what the
// device has. An unknown name throws InvalidArgument with the nearest one. For tests and measurements: "subgroup=8"
// forces a size in range; "storage=buffers" or "storage=textures" overrides what the file says, for every value that an
// operator takes so; "matrix=16x8x16" has cooperative matrices of that shape used; "kernel=gemv1" has that kernel
// used (a graph with a node that it cannot compute is refused); "like_gpu" has a CPU driver run the kernels a GPU would
// get; "max_storage=1m" (bytes of a binding), "max_allocation=", "max_shared=", "max_invocations=", "max_groups="
// (along each axis), "max_image_3d=", "max_image_2d=" (texels along each axis) and "alignment=" (of a binding's offset)
// are limits of a poorer device, never of a richer one.
Features apply(Features features, const std::string& text);

struct DeviceInfo {
  uint32_t index;
  std::string name, driver, driver_version, kind;  // kind: "discrete", "integrated", "virtual", "cpu", "other"
  std::string uuid;                                // 32 hex digits
  uint32_t api_version;
  uint64_t memory_bytes;  // of the device-local heaps
  Features features;
};

// Every device the loader shows, CPU drivers included. An empty list with no loader or driver; `why` then says what was
// looked for.
std::vector<DeviceInfo> list_devices(std::string* why = nullptr);

struct DeviceOptions {
  std::string device;    // index, part of the name, or UUID; "" = PUMICE_DEVICE, else the best GPU (never a CPU driver)
  std::string features;  // see apply(); "" = PUMICE_FEATURES; where it forces no kernel, PUMICE_KERNEL does
  std::string cache_dir;  // pipeline cache; "" = PUMICE_CACHE_DIR, else XDG_CACHE_HOME/pumice; "off" = none
};

struct Instance;  // vulkan/instance.h
struct Physical;  // vulkan/physical.h
struct Vk;        // vulkan/functions.h: the table through which every Vulkan call goes
class Pipelines;  // vulkan/pipeline.h
class Memory;     // vulkan/memory.h
class Commands;   // vulkan/command.h

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

  // A lost device stays lost; open() then makes a new one.
  bool is_lost() const;

  // Submits and waits; the queue is locked inside, so sessions on several threads may call it. Throws Timeout (the
  // device then counts as lost), DeviceLost (sticky). Releases nothing. A timeout of 0: a minute, ten on a CPU driver.
  void run(const Commands& commands, uint64_t timeout_ns = 0);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Device(std::unique_ptr<Impl> impl);
  static std::shared_ptr<Device> create(std::shared_ptr<Instance> instance, const Physical& physical,
                                        const std::string& features, const std::string& cache_dir);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pumice::engine
