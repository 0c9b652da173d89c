// SPDX-License-Identifier: Apache-2.0
#include "glsl/shader.h"

namespace pumice::engine {

const char* name(Feature feature) {
  constexpr const char* kNames[kNumFeatures] = {
      "float16",
      "int8",
      "int16",
      "int64",
      "storage16",
      "storage8",
      "int_dot",
      "coopmat",
      "memory_model",
      "bfloat16",
      "subgroup_arithmetic",
      "subgroup_shuffle",
      "subgroup_clustered",
      "subgroup_size_control",
      "fragments",
      "robust",
      "split",
      "addresses",
      "atomic64",
      "persistent",
      "float_atomics",
  };
  const auto index = static_cast<uint32_t>(feature);
  return index < kNumFeatures ? kNames[index] : "?";
}

}  // namespace pumice::engine
