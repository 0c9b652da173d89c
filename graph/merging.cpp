// SPDX-License-Identifier: Apache-2.0
#include "graph/merging.h"

#include "base/log.h"
#include "glsl/include/core/modes.glslh"
#include "graph/bind.h"

namespace pumice::engine {
namespace {

bool reported(const Encoding& encoding, int32_t status) {
  return encoding.status != nullptr && encoding.status[0] != 0 && static_cast<int32_t>(encoding.status[3]) == status;
}

}  // namespace

std::vector<std::shared_ptr<const Merged>> Merging::find(const std::shared_ptr<Device>& device, const Graph& graph,
                                                         bool steps,
                                                         const std::function<bool(uint32_t state)>& keeps_state) {
  if (!on_) return {};
  std::vector<std::shared_ptr<const Merged>> all = find_merged(graph, steps, keeps_state);
  for (const auto& each : all) {
    const PipelineKey key = pipeline_key(each->dispatch);
    if (asked_.contains(key)) continue;
    if (!run_at_once(device, *each)) {
      stop(*device);
      return {};
    }
    asked_.insert(key);
    log(LogLevel::debug, "%s: in one dispatch", each->name.c_str());
  }
  return all;
}

bool Merging::gave_up(const Encoding& encoding) const {
  return on_ && reported(encoding, STATUS_GAVE_UP);
}

bool Merging::declined(const Encoding& encoding) {
  return encoding.step_words != nullptr && reported(encoding, STATUS_DECLINED);
}

bool Merging::suits(const Graph& graph, std::span<const InputView> inputs) {
  const Graph::Impl& impl = graph.impl();
  const std::vector<uint32_t>& ids = impl.method().inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = std::span(static_cast<const std::byte*>(inputs[i].data), inputs[i].bytes);
    for (const auto& [tensor, suits] : impl.step_conditions)
      if (impl.view_root(tensor) == ids[i] && !suits(bytes)) return false;
  }
  return true;
}

void Merging::stop(const Device& device) {
  on_ = false;
  log(LogLevel::warning, "%s did not run all workgroups of a kernel at once; single kernels take over",
      device.info().name.c_str());
}

}  // namespace pumice::engine
