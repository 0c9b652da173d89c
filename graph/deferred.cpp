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

std::vector<uint32_t> count_uses(const Method& method) {
  std::vector<uint32_t> uses(method.values.size(), 0);
  for (const OpCall& call : method.ops) {
    for (const Arg& arg : call.args) {
      if (arg.kind == ArgKind::value) ++uses[static_cast<size_t>(arg.i)];
      if (arg.kind != ArgKind::values) continue;
      for (const int64_t id : arg.list) ++uses[static_cast<size_t>(id)];
    }
  }
  for (const uint32_t output : method.outputs) ++uses[output];
  for (const Update& update : method.updates) ++uses[update.value];
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

std::vector<Use> uses_of(const Graph& graph, Tensor value) {
  const Graph::Impl& impl = graph.impl();
  std::vector<Use> uses;
  if (num_uses(graph, value) == 0) return uses;
  for (const OpCall& call : impl.method().ops) {
    for (size_t a = 0; a < call.args.size(); ++a) {
      const Arg& arg = call.args[a];
      const bool one = arg.kind == ArgKind::value && arg.i == value.id();
      const bool listed = arg.kind == ArgKind::values && std::ranges::find(arg.list, value.id()) != arg.list.end();
      if (one || listed) uses.push_back({impl.op_name(call.op), a});
    }
  }
  for (const uint32_t output : impl.method().outputs)
    if (output == value.id()) uses.emplace_back();
  for (const Update& update : impl.method().updates)
    if (update.value == value.id()) uses.emplace_back();
  return uses;
}

uint32_t num_uses(const Graph& graph, Tensor value) {
  const Graph::Impl& impl = graph.impl();
  if (impl.uses.empty()) impl.uses = count_uses(impl.method());
  return impl.uses.at(value.id());
}

bool has_fixed_shape(const Graph& graph, Tensor value) {
  const std::vector<SymInt>& dims = graph.impl().method().values.at(value.id()).dims;
  return std::ranges::none_of(dims, [](const SymInt& dim) { return dim.is_expr; });
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
