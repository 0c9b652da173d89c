// SPDX-License-Identifier: Apache-2.0
// Nodes that one dispatch does together, whose workgroups all run at once and hand values over: all layers of a decoder
// (ops/shared/decoder_layers.h). Which nodes, the operators say, at live shapes; what is here is true of any such
// dispatch. It is never cut, and nothing else runs beside it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph_impl.h"

namespace pumice::engine {

// A node with one dispatch, at live shapes; the ids of its tensors are those that have the memory (view_root).
struct RunningNode {
  uint32_t node;
  const Dispatch* dispatch;
  std::vector<uint32_t> writes, reads;
};

// A word of 64 bits that the kernel reads: the address of a tensor, or a number.
struct TableEntry {
  uint32_t tensor = kNone;
  uint64_t number = 0;
};

// What a binding of the dispatch is.
struct MergedBinding {
  // steps: two words, how many steps of the call are left, and how many a dispatch runs; the kernel counts down
  enum class Kind : uint8_t { tensor, scratch, table, steps } kind;
  uint32_t tensor = kNone;
  uint64_t bytes =
      0;  // of steps, and of scratch, which is 0 before the first run and then stays as the kernel leaves it
};

struct Merged {
  uint32_t first = 0, last = 0;  // nodes; of those between, all that run
  std::string name;              // for profiles
  Dispatch dispatch;
  std::vector<std::byte>
      probe;  // push constants with which it reports STATUS_GAVE_UP unless all workgroups run at once
  std::vector<MergedBinding> bindings;
  uint32_t status = 0;  // the binding of Graph::status
  std::vector<TableEntry> table;
  bool runs_steps = false;        // it has a binding of kind steps, is the whole method, and may report STATUS_DECLINED
  std::vector<uint32_t> results;  // tensors that it writes; the others that its nodes wrote must not be read elsewhere
  std::vector<uint32_t> rows;  // of the results, those of which a run that is made again writes the same rows: caches
  std::vector<uint32_t> writes = {}, reads = {};  // set by find_merged
};

// The merged dispatches of a graph at its live shapes, in order. `steps`: also one that runs all steps of a call; then
// it is the only one. `keeps_state`: whether a run that failed can set the state back; else its new value must be in
// Merged::rows, or nothing is merged.
std::vector<std::shared_ptr<const Merged>> find_merged(const Graph& graph, bool steps,
                                                       const std::function<bool(uint32_t state)>& keeps_state);

}  // namespace pumice::engine
