// SPDX-License-Identifier: Apache-2.0
#include "vulkan/kernel_family.h"

#include <string_view>

#include "vulkan/features.h"
#include "vulkan/runnable.h"

namespace pumice::engine {

const char* name(KernelFamily family) {
  constexpr const char* kNames[kKernelFamilies] = {"portable", "subgroups", "dot", "matrix", "fragments"};
  return kNames[static_cast<uint32_t>(family)];
}

// A kernel that packs for others has the word, too, but no matrices. Those that probe find out where elements lie.
// Workgroups that wait for each other must all run at once: only of a device that tells its compute units is that
// known.
uint64_t needs(const Shader& shader) {
  const std::string_view name = shader.name;
  uint64_t needed = shader.features;
  if (name.starts_with("decoder_layers")) needed |= bit(Feature::persistent);
  const bool knows_places = (shader.features & bit(Feature::coopmat)) != 0 && !name.starts_with("probe_");
  if (!knows_places || name.find("fragments") == name.npos) return needed;
  const bool bytes = name.find("fragments_int8") != name.npos;
  return needed | bit(bytes ? Feature::fragments_int8 : Feature::fragments);
}

bool is_for_cpu(const Shader& shader) {
  const std::string_view name = shader.name;
  return name.ends_with(",address]") || name == "decoder_layers[plain]";
}

bool may_run(const Shader& shader, const Features& features) {
  return (needs(shader) & ~features.bits) == 0 && suits_kind(features, shader);
}

KernelFamily family_of(const Shader& shader) {
  const uint64_t needed = needs(shader);
  for (const KernelFamily each :
       {KernelFamily::fragments, KernelFamily::matrix, KernelFamily::dot, KernelFamily::subgroups})
    if ((needed & needs(each)) != 0) return each;
  return KernelFamily::portable;
}

uint64_t needs(KernelFamily family) {
  switch (family) {
    case KernelFamily::fragments:
      return bit(Feature::fragments) | bit(Feature::fragments_int8);  // the same assumption, probed alike
    case KernelFamily::matrix:
      return bit(Feature::coopmat);
    case KernelFamily::dot:
      return bit(Feature::int_dot);
    case KernelFamily::subgroups:
      return bit(Feature::subgroup_arithmetic) | bit(Feature::subgroup_shuffle) | bit(Feature::subgroup_clustered);
    case KernelFamily::portable:
      break;
  }
  return 0;
}

}  // namespace pumice::engine
