// SPDX-License-Identifier: Apache-2.0
// Whether a device can make a pipeline: checked before the driver is called, which may crash on a shader that needs
// something it does not have. Private to vulkan/.
#pragma once

#include "vulkan/core.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// Throws DeviceUnsupported with what is missing.
void require_runnable(const Core& core, const PipelineKey& key);

}  // namespace pumice::engine
