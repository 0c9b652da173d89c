// SPDX-License-Identifier: Apache-2.0
// What a device can do, as data: features, limits, and the user's switches (PUMICE_FEATURES).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "glsl/shader.h"
#include "vulkan/kernel_family.h"

namespace pumice::engine {

class TunedKernels;  // vulkan/tuned_kernels.h

// A cooperative matrix product of a subgroup: m x k times k x n.
struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  bool operator==(const MatrixShape&) const = default;
};
using MatrixShapes = std::array<MatrixShape, 8>;  // the largest first; m = 0 ends it

// Texels of images: four elements each. An image is a value's storage in a texture, see StorageType.
enum class ImageFormat : uint8_t { rgba32f, rgba16f, rgba32i, rgba8i, rgba8u, rgba32u };
inline constexpr uint32_t kImageFormats = 6;

// Overrides, for tests, the StorageType that the file gives each value: "storage=buffers", "storage=textures".
enum class StorageOverride : uint8_t { as_exported, buffers, textures };

// What the choice of a kernel may depend on. Plain data, so that selection is tested without a GPU.
struct Features {
  uint64_t bits = 0;  // of Feature
  uint32_t subgroup_size = 1, min_subgroup_size = 1, max_subgroup_size = 1;
  uint32_t max_invocations = 128;  // of one workgroup, x also
  uint32_t max_shared_bytes = 16384;
  uint32_t max_push_bytes = 128;
  uint32_t max_storage_buffers = 4;  // of one shader
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint64_t max_storage_bytes = 1ull << 27;  // of one binding
  uint64_t max_allocation_bytes = 1ull << 30;
  uint64_t storage_alignment = 256;                  // of a binding's offset
  MatrixShapes matrix_f16{};                         // of f16 and f16, summed in f32
  MatrixShapes matrix_s8{};                          // of s8 and s8, summed in s32
  uint32_t max_image_3d = 256, max_image_2d = 4096;  // texels along each axis
  // Bit f: ImageFormat f may be read and written in a 2D and 3D image.
  uint32_t image_formats = (1u << kImageFormats) - 1;
  StorageOverride storage = StorageOverride::as_exported;
  uint32_t max_waits = ~0u;    // of a lane of a kernel whose workgroups wait for each other; then it gives up
  uint32_t compute_units = 0;  // multiprocessors; of a CPU driver, threads; 0: not known
  uint32_t as_if_units = 0;    // selection reckons with these in their place; 0: it does not
  bool staged = false;         // device memory counts as memory that the host does not see
  bool cpu = false;            // invocations run on the host's processor: few workgroups fill it
  bool few_registers = false;  // a guess, by guess_registers()
  std::string kernel = {};     // of matrix products, forced by name; "": the best one is picked
  bool untuned = false;        // by the selection's own tables, whatever was tuned
  std::shared_ptr<const TunedKernels> tuned = {};  // what was measured on this device; null: nothing
  bool untested = false;                 // kernels are not tested when a model is loaded (runtime/self_test.h)
  std::optional<KernelFamily> lie = {};  // whose kernels are spoilt, to show that the self test sees it
  uint32_t submit_us = 0;  // microseconds planned for a submit, without regard to what is measured; 0: the default
  // Those that selection reckons with: where the driver does not say, a guess (docs/devices.md).
  uint32_t units() const { return as_if_units != 0 ? as_if_units : compute_units != 0 ? compute_units : 32; }
  // How many workgroups, subgroups or invocations fill this device as `measured` of them fill 132 units (H200).
  int64_t filling(int64_t measured) const { return std::max<int64_t>(1, measured * units() / 132); }
  // No Vulkan property tells how many there are. By what Mesa's compilers spill (docs/fleet.md), few are in GPUs
  // without packed dot products, with subgroups of fewer than 32, whose registers are a subgroup's, or of more than 64,
  // which divide them. Call it with the device's own features, before any is switched off.
  void guess_registers() {
    few_registers = !cpu && (!has(Feature::int_dot) || min_subgroup_size < 32 || max_subgroup_size > 64);
  }
  bool has(Feature feature) const { return bits & bit(feature); }
  bool runs(const Shader& shader) const { return (shader.features & ~bits) == 0; }
};

// The poorest device Pumice runs on: every limit at Vulkan 1.1's minimum, nothing optional.
Features baseline_features();

// `text` is a comma list. An unknown name throws InvalidArgument with the nearest one.
//   -coopmat               takes a feature away
//   none                   takes all optional features away
//   +coopmat               after "none": gives a feature of the device back
//   +float_atomics         gives one that is off unless asked for (kAskedFor), where the device has it
// For tests and measurements:
//   subgroup=8             forces a subgroup size that the device has
//   storage=buffers        or storage=textures: overrides the file, for every value whose operators have such kernels
//   matrix=16x8x16         prefers cooperative matrices of that shape
//   kernel=gemv1           forces a kernel; a graph with a node that it cannot compute is refused
//   untuned                leaves the choice of kernels to the tables, without what `pumice tune` measured
//   untested               does not test kernels when a model is loaded
//   lie=matrix             spoils the results of a family of kernels (vulkan/kernel_family.h): of each dispatch one
//                          workgroup is left out
//   like_gpu               a CPU driver runs the kernels that a GPU of 132 compute units would get
//   submit_us=1            plans so many microseconds for a submit: long runs, and 1 any run, are cut into many
//   staged                 copies through staging buffers, as for a discrete GPU, where the host sees device memory
//   max_storage=1m         the most bytes of a binding; a limit becomes tighter than the device's, never wider
//   max_allocation=, max_shared= (bytes), max_invocations=, max_groups= (along each axis), max_image_3d=,
//   max_image_2d= (texels along each axis), alignment= (of a binding's offset), max_waits= (of a lane for another
//   workgroup, glsl/include/decoder/exchange.glslh): the same
Features apply(Features features, const std::string& text);

}  // namespace pumice::engine
