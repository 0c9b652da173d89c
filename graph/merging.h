// SPDX-License-Identifier: Apache-2.0
// Whether a session merges nodes (graph/merge.h): only on a device that runs all workgroups of such a dispatch at once,
// which each is asked before its first use, and only as long as none gives up.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/input_rules.h"
#include "graph/record.h"

namespace pumice::engine {

class Merging {
 public:
  // The merged dispatches of the graph at its live shapes; none where the device does not run one.
  std::vector<std::shared_ptr<const Merged>> find(const std::shared_ptr<Device>& device, const Graph& graph, bool steps,
                                                  const std::function<bool(uint32_t state)>& keeps_state);
  // Whether the last run of the encoding is wrong, and to be made again after stop().
  bool gave_up(const Encoding& encoding) const;
  // Whether it has not run: to be made again without a dispatch that runs several steps.
  static bool declined(const Encoding& encoding);
  // Whether a dispatch that runs several steps suits these inputs: Graph::steps_suit.
  static bool suits(const Graph& graph, std::span<const InputView> inputs);
  void stop(const Device& device);  // merges no more, and says so

 private:
  bool on_ = true;
  std::unordered_set<PipelineKey, PipelineKeyHash> asked_;
};

}  // namespace pumice::engine
