// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to the steps of a run, barriers included. Needs no device.
#pragma once

#include <vector>

#include "graph/hazard.h"
#include "graph/layout.h"
#include "graph/merge.h"

namespace pumice::engine {

// Where the host writes an input or reads an output.
struct Port {
  uint32_t tensor;
  DType dtype;
  Shape shape;
  uint64_t count;   // elements
  uint64_t bytes;   // on the device
  uint64_t offset;  // in upload or download; unused where the host works in place
  std::byte* data = nullptr;
};

struct Ports {
  std::vector<Port> inputs, outputs;
  uint64_t upload_bytes = 0, download_bytes = 0, status_offset = 0;
};
// `in_place`: the host sees the device's memory, nothing is staged.
Ports ports(const Graph& graph, const Layout& layout, bool in_place);

// What runs, in order. `separate`: a barrier before each step, for timing. `merged`: dispatches that replace nodes.
std::vector<Step> steps(const Graph& graph, const Layout& layout, const Ports& ports, bool in_place, bool separate,
                        std::span<const std::shared_ptr<const Merged>> merged = {});

// What a step of kind dispatch runs.
std::span<const Dispatch> dispatches(const Graph::Impl& graph, const Step& step);

}  // namespace pumice::engine
