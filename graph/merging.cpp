// SPDX-License-Identifier: Apache-2.0
#include "graph/merging.h"

#include "base/log.h"
#include "glsl/include/core/modes.glslh"
#include "graph/bind.h"

namespace pumice::engine {

std::vector<std::shared_ptr<const Merged>> Merging::find(const std::shared_ptr<Device>& device, const Graph& graph,
                                                         const std::function<bool(uint32_t state)>& keeps_state) {
  if (!on_) return {};
  std::vector<std::shared_ptr<const Merged>> all = find_merged(graph, keeps_state);
  for (const auto& each : all) {
    const PipelineKey key = pipeline_key(each->dispatch);
    if (asked_.contains(key)) continue;
    if (!run_at_once(device, *each)) {
      stop(*device);
      return {};
    }
    asked_.insert(key);
  }
  return all;
}

bool Merging::gave_up(const Encoding& encoding) const {
  return on_ && encoding.status != nullptr && encoding.status[0] != 0 &&
         static_cast<int32_t>(encoding.status[3]) == STATUS_GAVE_UP;
}

void Merging::stop(const Device& device) {
  on_ = false;
  log(LogLevel::warning, "%s did not run all workgroups of a kernel at once; single kernels take over",
      device.info().name.c_str());
}

}  // namespace pumice::engine
