// SPDX-License-Identifier: Apache-2.0
#include "graph/infer.h"

#include <algorithm>
#include <cinttypes>

#include "graph/slices.h"
#include "serialization/expr.h"

namespace pumice::engine {
namespace {

void unique(std::vector<uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// While it lives, sizes that are read are noted in the node.
struct Launching {
  const Graph::Impl& graph;
  Launching(const Graph::Impl& of, Node* node) : graph(of) {
    node->used_tensors.clear();
    node->used_exprs.clear();
    graph.launching = node;
  }
  ~Launching() { graph.launching = nullptr; }
};

bool is_current(const Graph::Impl& graph, const Node& node) {
  const auto changed = [&](uint32_t id) { return id != kNone && graph.tensors[id].changed; };
  return node.inferred && std::none_of(node.used_tensors.begin(), node.used_tensors.end(), changed) &&
         std::none_of(node.writes.begin(), node.writes.end(), changed) &&
         std::none_of(node.used_exprs.begin(), node.used_exprs.end(),
                      [&](uint32_t e) { return graph.exprs[e] != graph.previous_exprs[e]; });
}

void run(Graph& graph, Node& node) {
  Graph::Impl& impl = graph.impl();
  node.inferred = false;
  if (node.kind == NodeKind::copy) {  // made by build, of one declared shape or a temporary
    Tensor(&graph, node.writes[0]).resize(impl.tensors[node.reads[0]].shape);
  } else {
    const Launching launching(impl, &node);
    if (node.kind == NodeKind::view) {
      node.shape(Launch(impl.features, graph));
    } else {
      uint32_t outer = 0;
      node.dispatches = launch(graph, node.launch, node.writes.size() + node.reads.size(), &outer);
      if (outer != 0) slice(graph, node, outer);
    }
  }
  if (node.kind != NodeKind::dispatch) {
    const uint64_t out = impl.bytes(node.writes[0]), in = impl.bytes(node.reads[0]);
    if (node.first ? out > in : out != in)
      fail(Code::BadShape, Stage::plan, "", "a view changes the number of elements");
  }
  for (const uint32_t id : node.writes) impl.bytes(id);  // within limits
  unique(node.used_tensors);
  unique(node.used_exprs);
  node.inferred = true;
}

void set_declared(Graph::Impl& graph) {
  const Method& method = graph.method();
  Shape shape;
  for (uint32_t v = 0; v < method.values.size(); ++v) {
    TensorInfo& tensor = graph.tensors[v];
    const auto& dims = method.values[v].dims;
    shape.clear();
    for (uint32_t d = 0; d < dims.size(); ++d) {
      const int64_t size = dims[d].is_expr ? graph.exprs[static_cast<size_t>(dims[d].value)] : dims[d].value;
      if (size < 0)
        fail(Code::BadShape, Stage::plan, format("methods[%u].values[%u].dims[%u]", graph.method_index, v, d),
             "the size is %" PRId64, size);
      shape.push_back(size);
    }
    tensor.changed = shape != tensor.shape;
    if (tensor.changed) tensor.shape.swap(shape);
    graph.bytes(v);
  }
  for (size_t t = method.values.size(); t < graph.tensors.size(); ++t) graph.tensors[t].changed = false;
}

// Finds mistakes of operators, and limits of the device.
void check_dispatch(const Features& features, Dispatch& dispatch, size_t bindings) {
  const Shader& shader = *dispatch.shader;
  const auto bug = [&](const char* what, uint64_t got, uint64_t want) {
    fail(Code::Internal, Stage::plan, "", "%s: %" PRIu64 " %s, the shader has %" PRIu64, shader.name, got, what, want);
  };
  if (bindings != shader.num_bindings) bug("bindings", bindings, shader.num_bindings);
  if (dispatch.binding_ranges.size() > bindings)
    bug("binding_ranges", dispatch.binding_ranges.size(), shader.num_bindings);
  if (dispatch.push.size() != shader.push_bytes)
    bug("bytes of push constants", dispatch.push.size(), shader.push_bytes);
  for (const BindingAddress& each : dispatch.addresses) {
    if (each.binding >= bindings) bug("bindings up to one with an address", each.binding + 1, bindings);
    if (each.push + sizeof(uint64_t) > shader.push_bytes)
      bug("bytes of push constants up to an address", each.push + sizeof(uint64_t), shader.push_bytes);
  }
  if (dispatch.spec.empty()) dispatch.spec.push_back(128);
  if (dispatch.spec.size() > shader.num_spec) bug("specialization constants", dispatch.spec.size(), shader.num_spec);
  for (int axis = 0; axis < 3; ++axis) {
    if (dispatch.groups[axis] > features.max_groups[axis])
      fail(Code::LimitExceeded, Stage::plan, "", "%s: %u workgroups along %c, the device takes %u", shader.name,
           dispatch.groups[axis], 'x' + axis, features.max_groups[axis]);
  }
  if (dispatch.spec[0] > features.max_invocations || !features.runs(shader))
    fail(Code::DeviceUnsupported, Stage::plan, "",
         "%s needs features %#" PRIx64 " and %u invocations; the device has %#" PRIx64 " and %u", shader.name,
         shader.features, dispatch.spec[0], features.bits, features.max_invocations);
}

}  // namespace

std::vector<int64_t> hints(const Method& method) {
  std::vector<int64_t> result;
  for (const Symbol& symbol : method.symbols) result.push_back(symbol.hint);
  return result;
}

std::vector<Dispatch> launch(const Graph& graph, const LaunchFunction& function, size_t bindings, uint32_t* outer) {
  Launch filled(graph.impl().features, graph);
  function(filled);
  filled.next_dispatch();
  if (outer != nullptr) *outer = filled.outer;
  std::erase_if(filled.dispatches, [](const Dispatch& dispatch) { return !dispatch.runs(); });
  for (Dispatch& dispatch : filled.dispatches) check_dispatch(graph.impl().features, dispatch, bindings);
  return std::move(filled.dispatches);
}

uint32_t infer(Graph& graph, std::span<const int64_t> symbols) {
  Graph::Impl& impl = graph.impl();
  if (impl.inferred && std::equal(symbols.begin(), symbols.end(), impl.symbols.begin(), impl.symbols.end())) return 0;
  if (!impl.inferred) {
    for (Node& node : impl.nodes) node.inferred = false;
  }
  impl.inferred = false;
  impl.previous_exprs = std::move(impl.exprs);
  impl.exprs = evaluate(impl.method(), symbols);
  impl.previous_exprs.resize(impl.exprs.size());
  impl.symbols.assign(symbols.begin(), symbols.end());
  impl.nearer_root.clear();
  set_declared(impl);
  uint32_t launches = 0;
  for (Node& node : impl.nodes) {
    if (is_current(impl, node)) continue;
    with_path(impl, node.call, [&] { run(graph, node); });
    launches += node.kind == NodeKind::dispatch;
  }
  impl.inferred = true;
  return launches;
}

}  // namespace pumice::engine
