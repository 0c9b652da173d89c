// SPDX-License-Identifier: Apache-2.0
#include "graph/build.h"

#include <algorithm>

#include "graph/infer.h"
#include "graph/schedule.h"
#include "serialization/expr.h"

namespace pumice::engine {
namespace {

void add_values(Graph::Impl& graph) {
  const Method& method = graph.method();
  for (const Value& value : method.values) {
    TensorInfo tensor{.dtype = value.dtype, .rank = static_cast<uint32_t>(value.dims.size())};
    tensor.value = static_cast<uint32_t>(graph.tensors.size());
    tensor.declared = true;
    tensor.ref = static_cast<uint32_t>(value.ref);
    tensor.materialized = value.kind != ValueKind::scratch && value.kind != ValueKind::output;
    if (value.kind == ValueKind::constant) tensor.memory = MemorySource::constant;
    if (value.kind == ValueKind::state) tensor.memory = MemorySource::state;
    for (const SymInt& dim : value.dims)
      tensor.shape.push_back(dim.is_expr ? graph.exprs[static_cast<size_t>(dim.value)] : dim.value);
    graph.add(std::move(tensor));
  }
  graph.outputs = method.outputs;
  graph.writer.assign(method.values.size(), kNone);
  for (uint32_t c = 0; c < method.ops.size(); ++c) {
    for (const uint32_t output : method.ops[c].outputs) graph.writer[output] = c;
  }
}

// On the device, i4 exists only inside of packed constants. Constants and states have one size for all runs.
void check_values(const Graph::Impl& graph) {
  for (uint32_t v = 0; v < graph.tensors.size(); ++v) {
    const TensorInfo& tensor = graph.tensors[v];
    const std::string path = format("methods[%u].values[%u]", graph.method_index, v);
    if (tensor.dtype == DType::i4 && tensor.memory != MemorySource::constant)
      fail(Code::BadDtype, Stage::plan, path, "only constants are i4");
    for (const SymInt& dim : graph.method().values[v].dims) {
      if (dim.is_expr && tensor.memory != MemorySource::arena)
        fail(Code::BadShape, Stage::plan, path, "a %s has a dynamic dimension", name(graph.method().values[v].kind));
    }
  }
}

void check_update(const Graph::Impl& graph, uint32_t index) {
  const Update& update = graph.method().updates[index];
  const TensorInfo &state = graph.tensors[update.state], &value = graph.tensors[update.value];
  const std::string path = format("methods[%u].updates[%u]", graph.method_index, index);
  const bool is_input = graph.method().values[update.state].kind == ValueKind::input;
  if (state.memory != MemorySource::state && !is_input)
    fail(Code::BadGraph, Stage::plan, path, "value %u is neither a state nor an input", update.state);
  if (value.dtype != state.dtype)
    fail(Code::BadDtype, Stage::plan, path, "the state is %s, its new value %s", name(state.dtype), name(value.dtype));
  const std::vector<Value>& values = graph.method().values;
  if (!same_dims(values[update.state], values[update.value]))
    fail(Code::BadShape, Stage::plan, path, "the state's new value has another shape");
}

// Every output of the call must be written by one of its nodes, which are those from `first_node` on.
void check_outputs(const Graph::Impl& graph, const OpCall& call, size_t first_node) {
  std::vector<uint32_t> writes;
  for (size_t n = first_node; n < graph.nodes.size(); ++n)
    writes.insert(writes.end(), graph.nodes[n].writes.begin(), graph.nodes[n].writes.end());
  std::sort(writes.begin(), writes.end());
  const auto is_written = [&](uint32_t id) { return std::binary_search(writes.begin(), writes.end(), id); };
  for (const uint32_t output : call.outputs) {
    const bool written =
        graph.deferred.contains(output) || is_written(output) || is_written(graph.tensors[output].other_storage);
    if (!written) fail(Code::Internal, Stage::plan, "", "the operator does not write value %u", output);
  }
}

// Only packed constants may be made of i4; a view of it is i4, too.
void check_reads(const Graph::Impl& graph, size_t first_node) {
  for (size_t n = first_node; n < graph.nodes.size(); ++n) {
    for (const uint32_t id : graph.nodes[n].reads) {
      if (id != kNone && graph.tensors[id].dtype == DType::i4)
        fail(Code::BadDtype, Stage::plan, "", "value %u is i4, which this operator does not take", id);
    }
  }
}

}  // namespace

std::unique_ptr<Graph> build(const Program& program, uint32_t method, const Features& features,
                             const OperatorCallbacks& operators, const std::shared_ptr<ConstantFacts>& facts) {
  auto graph = std::make_unique<Graph>();
  Graph::Impl& impl = graph->impl();
  impl.program = &program;
  impl.method_index = method;
  impl.features = features;
  impl.op_name = operators.op_name;
  impl.copy_storage = operators.copy_storage;
  impl.merge = operators.merge;
  impl.facts = facts;
  impl.symbols = hints(impl.method());
  impl.exprs = evaluate(impl.method(), impl.symbols);
  add_values(impl);
  check_values(impl);
  for (uint32_t c = 0; c < impl.method().ops.size(); ++c) {
    const OpCall& call = impl.method().ops[c];
    const size_t first_node = impl.nodes.size();
    impl.call = c;
    with_path(impl, c, [&] {
      operators.add_nodes(*graph, impl.method(), call);
      check_outputs(impl, call, first_node);
      check_reads(impl, first_node);
    });
  }
  impl.call = kNone;
  for (uint32_t u = 0; u < impl.method().updates.size(); ++u) check_update(impl, u);
  for (const uint32_t id : impl.outputs) {
    if (impl.tensors[impl.view_root(id)].dtype == DType::i4)
      fail(Code::BadDtype, Stage::plan, format("methods[%u].outputs", method), "value %u is i4", id);
  }
  for (const uint32_t id : impl.outputs) impl.materialize(Tensor(graph.get(), id));
  for (const Update& update : impl.method().updates) impl.materialize(Tensor(graph.get(), update.value));
  impl.check_storages();
  schedule(impl);
  return graph;
}

}  // namespace pumice::engine
