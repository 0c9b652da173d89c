// SPDX-License-Identifier: Apache-2.0
#include "vulkan/pipeline_log.h"

#include <time.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/append_line.h"

namespace pumice::engine {
namespace {

constexpr const char* kVariable = "PUMICE_PIPELINE_LOG";

double number(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return statistic.value.f64;
    default:
      return static_cast<double>(statistic.value.u64);
  }
}

// Of all executables of the pipeline: some drivers compile a shader for several subgroup sizes, and the last one
// counts.
nlohmann::json statistics(const Core& core, VkPipeline pipeline) {
  nlohmann::json result = nlohmann::json::object();
  const Vk& vk = core.vk;
  VkPipelineInfoKHR of{};
  of.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR;
  of.pipeline = pipeline;
  uint32_t executables = 0;
  if (vk.GetPipelineExecutablePropertiesKHR(core.device, &of, &executables, nullptr) != VK_SUCCESS) return result;
  for (uint32_t e = 0; e < executables; ++e) {
    VkPipelineExecutableInfoKHR info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR;
    info.pipeline = pipeline;
    info.executableIndex = e;
    uint32_t count = 0;
    if (vk.GetPipelineExecutableStatisticsKHR(core.device, &info, &count, nullptr) != VK_SUCCESS) continue;
    VkPipelineExecutableStatisticKHR empty{};
    empty.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    std::vector<VkPipelineExecutableStatisticKHR> all(count, empty);
    if (vk.GetPipelineExecutableStatisticsKHR(core.device, &info, &count, all.data()) != VK_SUCCESS) continue;
    for (const auto& each : all) result[each.name] = number(each);
  }
  return result;
}

}  // namespace

nlohmann::json line_of(const PipelineKey& key) {
  return {{"shader", key.shader->name}, {"spec", key.spec}, {"subgroup_size", key.subgroup_size}};
}

bool logs_pipelines() {
  const char* path = std::getenv(kVariable);
  return path != nullptr && *path != 0;
}

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double log_begun(const PipelineKey& key) {
  if (logs_pipelines()) append_line(kVariable, line_of(key).dump());
  return processor_ms();
}

void log_pipeline(const Core& core, const PipelineKey& key, VkPipeline pipeline, double ms) {
  nlohmann::json line = line_of(key);
  line["ms"] = ms;
  if (core.physical.pipeline_statistics) line["statistics"] = statistics(core, pipeline);
  append_line(kVariable, line.dump());
}

}  // namespace pumice::engine
