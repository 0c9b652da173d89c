// SPDX-License-Identifier: Apache-2.0
// An operator call on a device: whether all runs give the same bits, and what fp64 and the portable kernel give.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/budget.h"
#include "runtime/one_call.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

struct Trial {
  OneCall call;
  Features features;
  bool compared = false;  // with portable kernels
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Graph> portable;  // with portable kernels; null where those of `graph` are
  // By find_wrong: until the first runs ended, where drivers compile kernels then. The model's first run need not, but
  // for portable ones.
  std::chrono::steady_clock::duration compiling{};

  // The call with kernels by `features`.
  Trial(OneCall one_call, const Features& features, const std::shared_ptr<ConstantFacts>& facts);
  void add_portable(const std::shared_ptr<ConstantFacts>& facts);
  // The same, of which nothing has run.
  Trial again(const std::shared_ptr<ConstantFacts>& facts) const;
  // The pipelines that it needs.
  std::vector<PipelineKey> pipelines() const;
};

// What is wrong; "": nothing. Empty where the constants of the call make no numbers that tell anything. `end`, later by
// trial.compiling: from then on four replays are enough. Takes the graphs. Throws LimitExceeded where the call, with
// both kinds of kernels, needs more memory than the budget.
std::optional<std::string> find_wrong(Trial& trial, const std::shared_ptr<Device>& device, const ExternalData& external,
                                      Budget budget, std::chrono::steady_clock::time_point end);

// Those of a call of a graph at live shapes.
std::vector<PipelineKey> pipelines_of(const Graph& graph, uint32_t call);

}  // namespace pumice::engine
