// SPDX-License-Identifier: Apache-2.0
#include "graph/deferred.h"

#include <algorithm>

#include <utility>

#include "graph/graph_impl.h"

namespace pumice::engine {
namespace {

// While it lives, nodes that are added belong to `call`.
struct CallScope {
  Graph::Impl& graph;
  uint32_t before;
  CallScope(Graph::Impl& of, uint32_t call) : graph(of), before(std::exchange(of.call, call)) {}
  ~CallScope() { graph.call = before; }
};

std::vector<std::vector<Use>> find_uses(const Method& method) {
  std::vector<std::vector<Use>> uses(method.values.size());
  for (uint32_t c = 0; c < method.ops.size(); ++c) {
    const std::vector<Arg>& args = method.ops[c].args;
    for (uint32_t a = 0; a < args.size(); ++a) {
      if (args[a].kind == ArgKind::value) uses[static_cast<size_t>(args[a].i)].push_back({c, a});
      if (args[a].kind != ArgKind::values) continue;
      for (const int64_t id : args[a].list) uses[static_cast<size_t>(id)].push_back({c, a});
    }
  }
  for (const uint32_t output : method.outputs) uses[output].emplace_back();
  for (const Update& update : method.updates) uses[update.value].emplace_back();
  return uses;
}

}  // namespace

void defer(Graph& graph, Tensor out, std::function<void()> write) {
  graph.impl().deferred[out.id()] = {graph.impl().call, std::move(write)};
}

bool is_deferred(const Graph& graph, Tensor value) {
  return graph.impl().deferred.contains(value.id());
}

void write_deferred(Graph& graph, Tensor out, const std::function<void()>& write, std::function<void()> later) {
  Deferred& deferred = graph.impl().deferred.at(out.id());
  const CallScope scope(graph.impl(), deferred.call);
  deferred.write = std::move(later);
  write();
}

const std::vector<Use>& uses_of(const Graph& graph, Tensor value) {
  const Graph::Impl& impl = graph.impl();
  if (impl.uses.empty()) impl.uses = find_uses(impl.method());
  return impl.uses.at(value.id());
}

std::string reader(const Graph& graph, const Use& use) {
  const Graph::Impl& impl = graph.impl();
  return use.call == kNone ? "" : impl.op_name(impl.method().ops[use.call].op);
}

bool has_fixed_shape(const Graph& graph, Tensor value) {
  const std::vector<SymInt>& dims = graph.impl().method().values.at(value.id()).dims;
  return std::ranges::none_of(dims, [](const SymInt& dim) { return dim.is_expr; });
}

bool is_fixed(const Graph& graph, Tensor value, uint32_t axis) {
  return !graph.impl().method().values.at(value.id()).dims.at(axis).is_expr;
}

bool is_always_one(const Graph& graph, Tensor value, uint32_t axis) {
  const SymInt& dim = graph.impl().method().values.at(value.id()).dims.at(axis);
  return !dim.is_expr && dim.value == 1;
}

bool same_shape(const Graph& graph, Tensor a, Tensor b) {
  const std::vector<Value>& values = graph.impl().method().values;
  return same_dims(values.at(a.id()), values.at(b.id()));
}

bool is_of_channels(const Graph& graph, Tensor factors, Tensor image) {
  const std::vector<Value>& values = graph.impl().method().values;
  Value want = values.at(image.id());
  if (want.dims.size() != 4) return false;
  want.dims[2] = want.dims[3] = {.value = 1};
  return same_dims(values.at(factors.id()), want);
}

void finish_deferred(Graph::Impl& graph, Tensor tensor) {
  auto deferred = graph.deferred.extract(tensor.id());
  if (deferred.empty()) return;
  const CallScope scope(graph, deferred.mapped().call);
  deferred.mapped().write();
}

}  // namespace pumice::engine
