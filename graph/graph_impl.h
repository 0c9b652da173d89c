// SPDX-License-Identifier: Apache-2.0
// What is in a graph. Build, infer, plan, prepack and encode read it; operators do not.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "graph/constant_facts.h"
#include "graph/deferred.h"
#include "graph/graph.h"

namespace pumice::engine {

struct Merged;       // graph/merge.h
struct RunningNode;  // graph/merge.h

inline constexpr uint32_t kNone = ~0u;

// Where the memory of a tensor comes from.
enum class MemorySource : uint8_t {
  arena,     // memory of the run, shared by values that do not live at once
  constant,  // TensorInfo::ref is an index in Program::constants
  packed,    // ref is an index in Graph::Impl::packed_constants
  state,     // ref is an index in Program::states
  status,    // the four words of Graph::status
  counters,  // the words of Graph::counters
};

// "Memory" is which bytes a tensor has, "storage" whether they are in a buffer or in a texture.
struct TensorInfo {
  DType dtype;
  uint32_t rank;
  MemorySource memory = MemorySource::arena;
  uint32_t ref = kNone;
  uint32_t value = kNone;  // index in Method::values; kNone: an operator's temporary
  uint32_t base = kNone;   // has the memory of this tensor (a view, or written in place) ...
  bool in_place = false;   // ... the latter only while both have the same number of bytes
  bool is_part = false;    // a view of first elements, or a view of that
  bool declared = false;   // the file has the shape
  bool changed = true;     // its shape, in the infer under way
  StorageType storage = StorageType::buffer;
  uint32_t other_storage = kNone;  // the tensor of the same value in a texture (of a buffer) or a buffer (of a texture)
  bool as_texture = false;         // some operator has a kernel for the texture that the file gives it
  bool materialized = false;       // while building: a node writes it, or it is an input, a constant or a state
  Shape shape = {};                // live
};

enum class NodeKind : uint8_t { dispatch, view, copy };

struct Node {
  NodeKind kind;
  uint32_t in_place = 0;  // the operator allows it for writes[i] and reads[i], i < in_place
  uint32_t call = kNone;  // index in Method::ops; kNone: made by build
  std::vector<uint32_t> writes = {}, reads = {};
  LaunchFunction launch = {};
  ShapeFunction shape = {};
  bool first = false;  // of a view: it may have fewer elements, the first ones
  uint32_t level = 0;  // nodes of one level do not depend on each other
  bool inferred = false;
  std::vector<uint32_t> used_tensors = {}, used_exprs = {};  // whose live sizes the launch read
  std::vector<Dispatch> dispatches = {};                     // of the launch at the live shapes; empty: nothing runs
};

// A constant that a kernel makes at load, from constants of the file or other packed constants.
struct PackedConstant {
  std::string key;  // equal keys, equal results, in any graph of a program
  std::string what;
  uint32_t call;
  std::vector<uint32_t> inputs;  // tensors
  uint32_t result;               // a tensor
  LaunchFunction launch;
};

// An output that no node writes yet: graph/deferred.h.
struct Deferred {
  uint32_t call;
  std::function<void()> write;
};

struct Graph::Impl {
  const Program* program = nullptr;
  uint32_t method_index = 0;
  Features features;
  std::function<std::string(uint32_t op)> op_name;
  std::shared_ptr<ConstantFacts> facts;

  std::vector<TensorInfo> tensors;  // the first ones are Method::values
  std::vector<Node> nodes;          // in order of execution once built
  std::vector<PackedConstant> packed_constants;
  std::unordered_map<std::string, uint32_t> packed_index;  // by key
  std::unordered_map<std::string, std::shared_ptr<void>> shared;
  std::unordered_map<uint32_t, Deferred> deferred;  // by tensor
  mutable std::vector<std::vector<Use>> uses;       // of values; found when first needed
  std::vector<uint32_t> writer;                     // of values: the call that writes it
  std::vector<uint32_t> outputs;                    // a tensor for each of Method::outputs
  uint32_t status = kNone;                          // a tensor
  std::vector<uint32_t> counters;                   // tensors, one after another in the session's words
  uint32_t call = kNone;                            // the one being built
  std::function<void(Graph&, Tensor out, Tensor in)> copy_storage;
  std::function<std::vector<Merged>(const Graph&, std::span<const RunningNode>, bool steps)> merge;
  // Of inputs, by which a dispatch that runs several steps is wanted: Graph::steps_suit.
  std::vector<std::pair<uint32_t, std::function<bool(std::span<const std::byte>)>>> step_conditions;
  bool copying = false;  // a copy between storages is being added: it writes the value of an earlier call

  std::vector<int64_t> symbols, exprs, previous_exprs;  // live values
  bool inferred = false;                                // symbols, shapes and dispatches belong together

  // The node whose launch or shape function runs now: the sizes that it reads are noted there.
  mutable Node* launching = nullptr;
  // Of tensors, in the infer under way: a tensor nearer to the root of its memory; kNone where not known.
  mutable std::vector<uint32_t> nearer_root;

  const Method& method() const { return program->methods[method_index]; }
  uint32_t add(TensorInfo info);
  void check_storages() const;  // throws BadSchema where the file has a texture for which no operator has a kernel
  // Before a read: writes the tensor if its output was deferred, or copies it from its other storage if only that has
  // the value.
  void materialize(Tensor tensor);
  // Where the words of one of `counters` begin, from the first of all on; of kNone, where they end.
  uint64_t counters_begin(uint32_t id) const;
  bool is_state(uint32_t id) const { return tensors[id].memory == MemorySource::state; }
  uint32_t view_root(uint32_t id) const;  // the tensor whose memory `id` has, by views alone
  // The same, also where written in place at the live shapes. In a launch: of what its node reads and writes.
  uint32_t memory_root(uint32_t id) const;
  uint64_t bytes(uint32_t id) const;      // on the device, at the live shape, not padded; throws LimitExceeded
  bool is_in_place(uint32_t id) const;    // allowed, and the sizes agree
  std::string path(uint32_t call) const;  // "methods[0].ops[17] (softmax)"
  int64_t size(SymInt size) const;
};

// The text that tells one packed constant from others. `constant` gives the text of a constant that goes into it,
// `result` is the tensor that it makes.
std::string packed_key(const Graph::Impl& graph, const std::string& what, const std::vector<uint32_t>& inputs,
                       const TensorInfo& result, const std::function<std::string(uint32_t constant)>& constant);

// Runs `body`; an error out of it gets the path of the call, its own path moves into the text.
template <class Body>
void with_path(const Graph::Impl& graph, uint32_t call, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    throw Error(error.code(), error.stage(), graph.path(call),
                (error.path().empty() ? "" : error.path() + ": ") + error.what());
  }
}

}  // namespace pumice::engine
