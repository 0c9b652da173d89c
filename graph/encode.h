// SPDX-License-Identifier: Apache-2.0
// From a graph at its live shapes to a recorded command buffer.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/build.h"
#include "graph/hazard.h"
#include "graph/plan.h"
#include "graph/prepack.h"
#include "vulkan/command.h"

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

// What runs in order, barriers included. Knows no device. `separate`: a barrier before each, for timing.
std::vector<Step> steps(const Graph& graph, const Layout& layout, const Ports& ports, bool in_place, bool separate);

// The buffers of a session.
struct Storages {
  const Weights& weights;
  const Buffer &arena, &upload, &download, &status;
  std::span<const Buffer> states;
  bool in_place;
};  // images belong to an encoding

struct Encoding {
  std::vector<int64_t> symbols;
  bool timed = false;  // a timestamp before each step and one at the end
  Ports ports;
  std::vector<Step> steps;
  Plan plan;
  std::vector<Image> images;
  std::unique_ptr<Commands> commands;
  const uint32_t* status = nullptr;  // four words, or null when no kernel reports
  uint64_t used = 0;                 // when, for the least recently used
};

// Prepares the pipelines, sets the ports' data and records.
void record(const std::shared_ptr<Device>& device, const Graph& graph, const Layout& layout, const Storages& storages,
            Encoding& encoding);

PipelineKey pipeline_key(const Dispatch& record);

// What a kernel sees of a tensor; of a texture everything.
Slice binding_range(const Slice& tensor, const BindingRange& range);

// Where a tensor of the graph lies (kNone: 16 bytes that no kernel reads), cut to a range.
using Bind = std::function<Slice(uint32_t tensor, const BindingRange& part)>;
// The dispatches of a node, into a recording under way.
void dispatch(Device& device, const Node& node, const Bind& bind, Commands& commands);

}  // namespace pumice::engine
