// SPDX-License-Identifier: Apache-2.0
// Reckons what a session of a program will take of a device. Weights are reckoned by Prepack::need.
#pragma once

#include <memory>
#include <span>

#include "graph/budget.h"
#include "graph/layout.h"
#include "graph/states.h"
#include "vulkan/memory.h"

namespace pumice::engine {

// Of a session's buffer that grows to `bytes`; it is made when it is first needed.
constexpr uint64_t grown_bytes(uint64_t bytes) {
  return bytes == 0 ? 0 : buffer_bytes(bytes);
}
// Of Program::states on the device.
uint64_t state_bytes(std::span<const StateInfo> states);
// Of the images of one recording. Images that the device does not take are left out: they are refused when they come.
uint64_t value_texture_bytes(Device& device, const Layout& layout);

// Of a session's words, which are 0 between its runs: the four of Graph::status, then those of Graph::counters.
constexpr uint64_t kCountersBegin = 256;  // no device asks for a larger alignment
uint64_t words_bytes(std::span<const std::unique_ptr<Graph>> graphs);

// Adds a session's part to what its weights need: states, and the first run of every method, at the shapes that the
// graphs have now. `layouts`: one for each graph.
void add_session(Device& device, const Program& program, std::span<const std::unique_ptr<Graph>> graphs,
                 std::span<const Layout> layouts, MemoryNeed& need);

// Throws LimitExceeded where the graphs, at their live shapes, ask for more than kMostPipelines different pipelines.
void check_pipelines(std::span<const std::unique_ptr<Graph>> graphs);
void check_pipelines(const Graph& graph);

}  // namespace pumice::engine
