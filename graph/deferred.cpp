// SPDX-License-Identifier: Apache-2.0
// Values whose first reader decides in which form they are written.
#include <utility>

#include "graph/build.h"

namespace pumice::engine {
namespace {

// Nodes added meanwhile belong to `call`.
struct InName {
  Graph::Impl& graph;
  uint32_t before;
  InName(Graph::Impl& of, uint32_t call) : graph(of), before(std::exchange(of.call, call)) {}
  ~InName() { graph.call = before; }
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

void Graph::defer(Tensor out, std::function<void()> write) {
  impl_->deferred[out.id()] = {impl_->call, std::move(write)};
}

bool Graph::is_deferred(Tensor value) const {
  return impl_->deferred.contains(value.id());
}

void Graph::write_deferred(Tensor out, const std::function<void()>& write, std::function<void()> later) {
  Deferred& deferred = impl_->deferred.at(out.id());
  const InName name(*impl_, deferred.call);
  deferred.write = std::move(later);
  write();
}

void Graph::Impl::write_late(Tensor tensor) {
  auto late = deferred.extract(tensor.id());
  if (late.empty()) return;
  const InName name(*this, late.mapped().call);
  late.mapped().write();
}

uint32_t Graph::num_uses(Tensor value) const {
  if (impl_->uses.empty()) impl_->uses = count_uses(impl_->method());
  return impl_->uses.at(value.id());
}

bool Graph::same_shape(Tensor a, Tensor b) const {
  const auto &left = impl_->method().values.at(a.id()).dims, &right = impl_->method().values.at(b.id()).dims;
  bool same = left.size() == right.size();
  for (size_t d = 0; same && d < left.size(); ++d)
    same = left[d].is_expr == right[d].is_expr && left[d].value == right[d].value;
  return same;
}

}  // namespace pumice::engine
