// SPDX-License-Identifier: Apache-2.0
#include "vulkan/driver_bugs.h"

#include <algorithm>

#include "vulkan/instance.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kAmd = 0x1002;

// Qualcomm packs as Vulkan does, MoltenVK in decimal digits. What was not seen to be right has no end.
constexpr DriverBug kBugs[] = {
    {.off = "-coopmat",
     .why = "asking for the shapes of cooperative matrices ends the process (Radeon 860M, 2.0.388)",
     .link = "https://github.com/GPUOpen-Drivers/AMDVLK/issues/422",
     .driver = VK_DRIVER_ID_AMD_PROPRIETARY,
     .kind = "integrated",
     .crashes_asked = true},
    {.off = "-int_dot",
     .why = "dot products of bytes are wrong (RX 6800, RX 6650 XT)",
     .link = "https://github.com/0xShug0/audio.cpp/pull/193",
     .driver = VK_DRIVER_ID_AMD_PROPRIETARY,
     .name = "Radeon RX 6"},
    {.off = "-coopmat",
     .why = "kernels of cooperative matrices hang, and the device is lost (Arc Pro B70, 101.8826)",
     .link = "https://github.com/IGCIT/Intel-GPU-Community-Issue-Tracker-IGCIT/issues/1487",
     .driver = VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS,
     .kind = "discrete"},
    {.off = "-coopmat,-int_dot",
     .why = "a language model gives the same token over and over (PowerVR DXT-48-1536)",
     .link = "https://github.com/ggml-org/llama.cpp/issues/28502",
     .driver = VK_DRIVER_ID_IMAGINATION_PROPRIETARY},
    {.off = "-subgroup_shuffle",
     .why = "products by subgroup shuffles are wrong (Snapdragon 855+, 512.502.0; 512.800.64 is right)",
     .link = "https://github.com/Tencent/ncnn/issues/6778",
     .driver = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .end = VK_MAKE_API_VERSION(0, 512, 503, 0)},
    {.off = "-subgroup_shuffle",
     .why = "products by subgroup shuffles are wrong (Adreno 840, 512.842.19; 512.800.64 is right)",
     .link = "https://github.com/Tencent/ncnn/issues/6778",
     .driver = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .first = VK_MAKE_API_VERSION(0, 512, 842, 0)},
    {.off = "-coopmat",
     .why = "loads, stores and products of cooperative matrices are wrong (Adreno 840, 512.842.19)",
     .link = "https://github.com/Tencent/ncnn/pull/6972",
     .driver = VK_DRIVER_ID_QUALCOMM_PROPRIETARY,
     .first = VK_MAKE_API_VERSION(0, 512, 842, 0)},
    {.off = "-subgroup_arithmetic,-subgroup_shuffle,-subgroup_clustered",
     .why = "subgroups of 64 of AMD GPUs are wrong in Metal (Radeon Pro 5500M, 1.4.1)",
     .link = "https://github.com/KhronosGroup/MoltenVK/issues/2756",
     .driver = VK_DRIVER_ID_MOLTENVK,
     .vendor = kAmd},
};

bool is_in(const DriverBug& bug, const DeviceInfo& info) {
  return bug.driver == info.driver_id && info.driver_number >= bug.first &&
         (bug.end == 0 || info.driver_number < bug.end) && (bug.vendor == 0 || bug.vendor == info.vendor_id) &&
         (bug.kind.empty() || bug.kind == info.kind) && info.name.find(bug.name) != std::string::npos;
}

}  // namespace

std::span<const DriverBug> driver_bugs() {
  return kBugs;
}

std::vector<DriverBug> bugs_of(const DeviceInfo& info) {
  std::vector<DriverBug> result;
  std::ranges::copy_if(kBugs, std::back_inserter(result), [&](const DriverBug& bug) { return is_in(bug, info); });
  return result;
}

std::string off_for_bugs(const DeviceInfo& info) {
  std::string text;
  for (const DriverBug& bug : bugs_of(info)) text += std::string(bug.off) + ",";
  return text;
}

bool may_ask(const DeviceInfo& info, Feature feature) {
  return std::ranges::none_of(bugs_of(info), [&](const DriverBug& bug) {
    return bug.crashes_asked && bug.off.find(name(feature)) != std::string_view::npos;
  });
}

}  // namespace pumice::engine
