// SPDX-License-Identifier: Apache-2.0
// What a driver's compiler makes of each pipeline: a line of JSON in the file that PUMICE_PIPELINE_LOG names, for
// `./dev fleet`. {"shader", "spec", "subgroup_size", "ms", "statistics": {name: number}}; the driver chooses the names.
// "ms" is processor time of the thread that asked, which a busy machine hardly changes. Before that comes a line
// without "ms" and "statistics", when the compiler begins: where it dies or hangs, that one has no other.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "vulkan/core.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

nlohmann::json line_of(const PipelineKey& key);  // shader, spec, subgroup_size
bool logs_pipelines();
double processor_ms();                     // of the calling thread
double log_begun(const PipelineKey& key);  // gives processor_ms()
// `pipeline` was made in `ms`, with VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR where Physical::pipeline_statistics.
void log_pipeline(const Core& core, const PipelineKey& key, VkPipeline pipeline, double ms);

}  // namespace pumice::engine
