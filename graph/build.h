// SPDX-License-Identifier: Apache-2.0
// From a verified method to a graph in execution order, and what is in a graph. plan, prepack and encode read it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

inline constexpr uint32_t kNone = ~0u;

// Where the storage of a tensor comes from.
enum class Home : uint8_t {
  arena,     // memory of the run, shared by values that do not live at once
  constant,  // TensorInfo::ref is an index in Program::constants
  packed,    // ref is an index in Graph::Impl::packs
  state,     // ref is an index in Program::states
  status,
};

struct TensorInfo {
  DType dtype;
  uint32_t rank;
  Home home = Home::arena;
  uint32_t ref = kNone;
  uint32_t value = kNone;  // index in Method::values; kNone: an operator's temporary
  uint32_t base = kNone;   // has the storage of this tensor (a view, or written in place) ...
  bool in_place = false;   // ... the latter only while both have the same number of bytes
  bool declared = false;   // the file says the shape
  bool changed = true;     // by the infer under way
  StorageClass storage = StorageClass::buffer;
  uint32_t twin = kNone;    // the same value in its other storage: of a texture the buffer, of a buffer maybe a texture
  bool as_texture = false;  // some operator takes it in the texture that the file, or Features::storage, asks for
  bool held = false;        // while building: it has the value, as far as the calls built so far go
  Shape shape = {};         // live
};

enum class NodeKind : uint8_t { dispatch, view, copy };

struct Node {
  NodeKind kind;
  bool in_place = false;  // the operator allows it for writes[0] and reads[0]
  uint32_t call = kNone;  // index in Method::ops; kNone: made by build
  std::vector<uint32_t> writes = {}, reads = {};
  LaunchFunction launch = {};
  ShapeFunction shape = {};
  uint32_t level = 0;  // nodes of one level do not depend on each other
  bool inferred = false;
  std::vector<uint32_t> used_tensors = {}, used_exprs = {};  // whose live sizes the launch asked for
  std::vector<Dispatch> dispatches = {};  // what the launch said for the live shapes; empty: nothing runs
};

// A constant made at load.
struct Pack {
  std::string key;  // equal keys, equal results, in any graph of a program
  std::string what;
  uint32_t call;
  std::vector<uint32_t> inputs;  // tensors: constants or results of other packs
  uint32_t result;
  LaunchFunction launch;
};

// How a value is written that nobody asked for yet.
struct Deferred {
  uint32_t call;
  std::function<void()> write;
};

// The text that tells a pack from others: `constant` names the constants that go into it, `result` is its outcome.
std::string pack_key(const Graph::Impl& graph, const std::string& what, const std::vector<uint32_t>& inputs,
                     const TensorInfo& result, const std::function<std::string(uint32_t constant)>& constant);

// What building learned of the values of constants, so that a later build of the program needs no file.
struct ConstantFacts {
  ExternalData external;  // for constants outside of the file, while the program is loaded; without it they are unknown
  std::map<uint32_t, bool> is_zero;
  std::map<uint32_t, std::optional<Graph::Exponents>> half_exponents;
  std::map<uint32_t, std::optional<Graph::Scale>> bad_scale;
};

struct Graph::Impl {
  const Program* program = nullptr;
  uint32_t method_index = 0;
  Features features;
  std::function<std::string(uint32_t op)> op_name;
  std::shared_ptr<ConstantFacts> facts;

  std::vector<TensorInfo> tensors;  // the first ones are Method::values
  std::vector<Node> nodes;          // in order of execution once built
  std::vector<Pack> packs;
  std::unordered_map<std::string, uint32_t> pack_index;  // by key
  std::unordered_map<std::string, std::shared_ptr<void>> shared;
  std::unordered_map<uint32_t, Deferred> deferred;  // by tensor
  mutable std::vector<uint32_t> uses;               // of values; counted when first asked for
  std::vector<uint32_t> outputs;                    // a tensor for each of Method::outputs
  uint32_t status = kNone, call = kNone;
  std::function<void(Graph&, Tensor out, Tensor in)> copy_storage;
  bool copying = false;  // between storages: what is written belongs to an earlier call

  std::vector<int64_t> symbols, exprs, previous_exprs;  // live values
  bool inferred = false;                                // symbols, shapes and records belong together

  // While a launch runs: what it asks for, and the node for texts.
  mutable Node* asking = nullptr;

  const Method& method() const { return program->methods[method_index]; }
  uint32_t add(TensorInfo info);
  void check_storages() const;  // throws BadSchema where the file asks for a texture that no operator takes
  // Writes what was deferred, and adds the copy out of the other storage where the tensor has not its value.
  void hold(Tensor tensor);
  void write_late(Tensor tensor);  // what was deferred
  // The tensor whose storage `id` has, by views alone, or at the live shapes.
  uint32_t view_root(uint32_t id) const;
  uint32_t storage(uint32_t id) const;
  bool has_bytes(uint32_t constant) const;  // whether they are at hand while the graph is built
  std::span<const std::byte> bytes_of(uint32_t constant) const;
  uint64_t bytes(uint32_t id) const;      // on the device, at the live shape, not padded; throws LimitExceeded
  bool granted(uint32_t id) const;        // in place, and the sizes agree
  std::string path(uint32_t call) const;  // "methods[0].ops[17] (softmax)"
  int64_t size(SymInt size) const;
};

// What a build needs beside the program; runtime/model.cpp knows the operators.
struct Builder {
  std::function<void(Graph&, const Method&, const OpCall&)> add_nodes;
  std::function<std::string(uint32_t op)> op_name;                       // of OpCall::op, for texts
  std::function<void(Graph&, Tensor out, Tensor in)> copy_storage = {};  // adds a node: buffer to texture, or back
};

// Shapes are at the hints. The program must outlive the graph. Errors carry the path of the operator call.
std::unique_ptr<Graph> build(const Program& program, uint32_t method, const Features& features, const Builder& builder,
                             const std::shared_ptr<ConstantFacts>& facts);

// Levels, storage in place, copies of state: called by build after the last operator. schedule.cpp.
void schedule(Graph::Impl& graph);

// Brings shapes and records to `symbols`; runs the launches whose sizes changed. On an error the graph holds no shapes
// until the next infer. Returns how many launches ran. infer.cpp.
uint32_t infer(Graph& graph, std::span<const int64_t> symbols);
std::vector<int64_t> hints(const Method& method);

// Runs the launch of a pack or node and checks what it said against the shader and the features. Its parts that run.
std::vector<Dispatch> launch(const Graph& graph, const LaunchFunction& function, size_t bindings);

// Both throw DeviceUnsupported with the value's name, its bytes and the limit, for what the graph's device cannot hold
// at once or bind to a kernel: check_weights of what stays on the device, check_bindings of everything at the live
// shapes. limits.cpp.
void check_weights(const Graph& graph);
void check_bindings(const Graph& graph);

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
