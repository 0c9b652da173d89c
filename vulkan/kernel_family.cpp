// SPDX-License-Identifier: Apache-2.0
#include "vulkan/kernel_family.h"

namespace pumice::engine {

const char* name(KernelFamily family) {
  constexpr const char* kNames[kKernelFamilies] = {"portable", "subgroups", "dot", "matrix", "fragments"};
  return kNames[static_cast<uint32_t>(family)];
}

KernelFamily family_of(const Shader& shader) {
  for (const KernelFamily each :
       {KernelFamily::fragments, KernelFamily::matrix, KernelFamily::dot, KernelFamily::subgroups})
    if ((shader.features & needs(each)) != 0) return each;
  return KernelFamily::portable;
}

uint64_t needs(KernelFamily family) {
  switch (family) {
    case KernelFamily::fragments:
      return bit(Feature::fragments);
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
