// SPDX-License-Identifier: Apache-2.0
// May this device make this pipeline? Asked before the driver is, which may answer a wrong question with a crash.
#include "vulkan/core.h"

namespace pumice::engine {
namespace {

[[noreturn]] void refuse(const Core& core, const Shader& shader, const std::string& text) {
  fail(Code::DeviceUnsupported, Stage::encode, shader.name, "%s %s on %s", shader.name, text.c_str(),
       core.vk.device.c_str());
}

}  // namespace

void require_runnable(const Core& core, const PipelineKey& key) {
  const Shader& shader = *key.shader;
  const Features& features = core.features;
  if (!features.runs(shader)) {
    std::string missing;
    for (uint32_t i = 0; i < kNumFeatures; ++i) {
      const auto feature = static_cast<Feature>(i);
      if ((shader.features & bit(feature)) && !features.has(feature))
        missing += (missing.empty() ? "" : ", ") + std::string(name(feature));
    }
    refuse(core, shader, "needs " + missing + ", which is not there or switched off,");
  }
  uint32_t buffers = 0;  // of images, a shader has no more than every device takes: glsl/reflect_spirv.py
  for (uint32_t b = 0; b < shader.num_bindings; ++b) buffers += binding_kind(shader, b) == Binding::buffer;
  if (buffers > core.physical.max_storage_buffers) {
    refuse(core, shader,
           format("binds %u buffers; at most %u are possible", buffers, core.physical.max_storage_buffers));
  }
  if (shader.push_bytes > features.max_push_bytes) {
    refuse(core, shader,
           format("takes %u bytes of parameters; at most %u are possible", shader.push_bytes, features.max_push_bytes));
  }
  if (!key.spec.empty() && shader.num_spec > 0 && (key.spec[0] == 0 || key.spec[0] > features.max_invocations)) {
    refuse(core, shader,
           format("wants workgroups of %u; at most %u are possible", key.spec[0], features.max_invocations));
  }
  if (key.subgroup_size != 0 &&
      (!features.has(Feature::subgroup_size_control) || key.subgroup_size < features.min_subgroup_size ||
       key.subgroup_size > features.max_subgroup_size)) {
    refuse(core, shader, format("requires subgroups of %u, which are not possible", key.subgroup_size));
  }
  if (key.spec.size() > shader.num_spec) {
    fail(Code::Internal, Stage::encode, shader.name, "%s has %u specialization constants; got %zu", shader.name,
         shader.num_spec, key.spec.size());
  }
}

}  // namespace pumice::engine
