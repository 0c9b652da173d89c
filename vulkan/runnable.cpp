// SPDX-License-Identifier: Apache-2.0
#include "vulkan/runnable.h"

#include "base/error.h"
#include "vulkan/kernel_family.h"

namespace pumice::engine {

bool suits_kind(const Features& features, const Shader& shader) {
  const bool cpu = features.cpu || features.as_if_units != 0;  // like_gpu, too
  return cpu || !is_for_cpu(shader);
}

std::string unrunnable_reason(const Features& features, const PipelineKey& key) {
  const Shader& shader = *key.shader;
  if (!suits_kind(features, shader)) return "is made for CPU drivers and not run";
  if (!features.runs(shader)) {
    std::string missing;
    for (uint32_t i = 0; i < kNumFeatures; ++i) {
      const auto feature = static_cast<Feature>(i);
      if ((shader.features & bit(feature)) && !features.has(feature))
        missing += (missing.empty() ? "" : ", ") + std::string(name(feature));
    }
    return "needs " + missing + ", which is not there or switched off,";
  }
  uint32_t buffers = 0;  // of images, a shader has no more than every device takes: glsl/reflect_spirv.py
  for (uint32_t b = 0; b < shader.num_bindings; ++b) buffers += binding_kind(shader, b) == Binding::buffer;
  if (buffers > features.max_storage_buffers)
    return format("binds %u buffers; at most %u are possible", buffers, features.max_storage_buffers);
  if (shader.push_bytes > features.max_push_bytes)
    return format("takes %u bytes of parameters; at most %u are possible", shader.push_bytes, features.max_push_bytes);
  if (!key.spec.empty() && shader.num_spec > 0 && (key.spec[0] == 0 || key.spec[0] > features.max_invocations))
    return format("wants workgroups of %u; at most %u are possible", key.spec[0], features.max_invocations);
  if (key.subgroup_size != 0 &&
      (!features.has(Feature::subgroup_size_control) || key.subgroup_size < features.min_subgroup_size ||
       key.subgroup_size > features.max_subgroup_size))
    return format("requires subgroups of %u, which are not possible", key.subgroup_size);
  return "";
}

void require_runnable(const Features& features, const std::string& device, const PipelineKey& key) {
  const Shader& shader = *key.shader;
  const std::string reason = unrunnable_reason(features, key);
  if (!reason.empty())
    fail(Code::DeviceUnsupported, Stage::encode, shader.name, "%s %s on %s", shader.name, reason.c_str(),
         device.c_str());
  if (key.spec.size() > shader.num_spec)
    fail(Code::Internal, Stage::encode, shader.name, "%s has %u specialization constants; got %zu", shader.name,
         shader.num_spec, key.spec.size());
}

}  // namespace pumice::engine
