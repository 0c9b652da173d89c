// SPDX-License-Identifier: Apache-2.0
// Whether a device can make a pipeline: checked before the driver is called, which may crash on a shader that needs
// something it does not have.
#pragma once

#include <string>

#include "vulkan/features.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// Whether it is a kernel for such devices: some are for CPU drivers alone (vulkan/kernel_family.h).
bool suits_kind(const Features& features, const Shader& shader);
// What is missing, as the end of "the shader ..."; empty where nothing is.
std::string unrunnable_reason(const Features& features, const PipelineKey& key);
// Throws DeviceUnsupported with it; `device` is its name.
void require_runnable(const Features& features, const std::string& device, const PipelineKey& key);

}  // namespace pumice::engine
