// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to the steps of a run, barriers included. Needs no device.
#pragma once

#include <vector>

#include "graph/hazard.h"
#include "graph/layout.h"
#include "graph/merge.h"
#include "graph/ports.h"

namespace pumice::engine {

// What runs, in order. `separate`: a barrier before each step, for timing. `merged`: dispatches that replace nodes.
std::vector<Step> steps(const Graph& graph, const Layout& layout, const Ports& ports, bool in_place, bool separate,
                        std::span<const std::shared_ptr<const Merged>> merged = {});

// The inputs that an update gives a new value, for the next run of the same call.
std::vector<uint32_t> updated_inputs(const Graph::Impl& graph);

// Takes what needs to be done only once out of `steps`, which run several times: the copies of inputs, to be done
// before, but for those that a step writes over, and the copies of outputs, to be done after. `updated`: inputs whose
// next value a step writes, tensors.
void once(std::span<const uint32_t> updated, std::vector<Step>& before, std::vector<Step>& steps,
          std::vector<Step>& after);

// What a step of kind dispatch runs.
std::span<const Dispatch> dispatches(const Graph::Impl& graph, const Step& step);

}  // namespace pumice::engine
