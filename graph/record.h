// SPDX-License-Identifier: Apache-2.0
// From steps to a recorded command buffer.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/encode.h"
#include "graph/parts.h"
#include "graph/state_undo.h"
#include "graph/weights.h"
#include "vulkan/command.h"

namespace pumice::engine {

// The buffers of a session. Images belong to an encoding.
struct SessionBuffers {
  const Weights& weights;
  const Buffer &arena, &upload, &download;
  const Buffer& words;  // graph/need.h
  std::span<const Buffer> states;
  const StateUndo& undo;
  bool in_place;
};

// A recorded run of a method at given symbols.
struct Encoding {
  std::vector<int64_t> symbols;
  bool timed = false;     // a timestamp before each step and one at the end
  bool repeated = false;  // may be submitted several times at once
  Ports ports;
  std::vector<Step> steps;          // of each repetition
  std::vector<Step> before, after;  // of a repeated one: its copies in and out, once for all repetitions
  Plan plan;
  std::vector<Image> images;
  std::vector<Buffer> merged_memory;  // table and scratch of each merged step, in their order
  std::unique_ptr<Commands> commands;
  std::unique_ptr<Commands> first,
      last;                          // of a repeated one: `before`, the states saved as well, and `after`; else null
  bool saves = false;                // a run begins with saving the states
  std::vector<Part> parts;           // of `commands`
  std::vector<double> factors = {};  // by which the parts were planned; empty: nothing was measured
  uint32_t recordings = 1;           // of these symbols, this one included
  uint64_t runs = 0;
  const uint32_t* status = nullptr;  // four words, or null when no kernel reports
  uint32_t* step_words = nullptr;    // for a merged step that runs several: MergedBinding::Kind::steps
  bool several_steps = false;        // such a step was looked for
  uint64_t used = 0;                 // Session's clock at the last use: the oldest encoding is dropped first
};

// `before`, `steps` and `after`, with the barriers between them.
std::vector<Step> in_order(const Encoding& encoding);

// What Encoding::merged_memory will take.
uint64_t merged_bytes(std::span<const std::shared_ptr<const Merged>> all);

// Prepares the pipelines, plans the parts, sets the ports' data and records. Throws Timeout between two pipelines.
void record(const std::shared_ptr<Device>& device, const Graph& graph, const Layout& layout,
            const SessionBuffers& buffers, const Deadline& deadline, Encoding& encoding);

// How many steps each of the submitted commands runs, of `steps` of a call; at most `a_submit`. Tells the kernel.
uint32_t set_steps(const Encoding& encoding, uint32_t steps, uint32_t a_submit);

// Whether all workgroups of a merged dispatch run at once: runs its probe.
bool run_at_once(const std::shared_ptr<Device>& device, const Merged& merged);

// Returns where a tensor of the graph lies, cut to a range. kNone: 16 bytes that no kernel reads.
using ResolveBinding = std::function<Slice(uint32_t tensor, const BindingRange& range)>;
// Adds a dispatch of a node, or a piece of it, to a recording under way.
void dispatch(Device& device, const Node& node, const Piece& piece, const ResolveBinding& resolve, Commands& commands);

}  // namespace pumice::engine
