// SPDX-License-Identifier: Apache-2.0
#include "glsl/shader.h"

#include <string>

#include "base/error.h"

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
      "fragments_int8",
  };
  const auto index = static_cast<uint32_t>(feature);
  return index < kNumFeatures ? kNames[index] : "?";
}

void left_out(std::string_view stem, std::span<const Axis> axes, uint32_t index) {
  std::string values;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    values = std::string(axis->values[index % axis->values.size()]) + (values.empty() ? "" : ",") + values;
    index /= static_cast<uint32_t>(axis->values.size());
  }
  fail(Code::Internal, Stage::plan, "", "an operator asks for %s[%s], a variant that its shader leaves out",
       std::string(stem).c_str(), values.c_str());
}

}  // namespace pumice::engine
