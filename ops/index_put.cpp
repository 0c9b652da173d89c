// SPDX-License-Identifier: Apache-2.0
// out = self, then out[.., index[p], ..] = values[.., p, ..] along `dim`, for every position p; the last of equal
// indices counts. When `self` is a state, this writes in place, and only the rows that change: a key/value cache.
#include "glsl/index_put.h"

#include "glsl/include/core/modes.glslh"
#include "glsl/index_put_last.h"
#include "ops/op.h"
#include "ops/reference/indices.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

// Up to this many positions, every invocation searches all of them; for more, a table is made first.
constexpr int64_t kLook = 16;

void index_put(Graph& graph, Args args) {
  const Tensor self = args.tensor(0), index = args.tensor(1), values = args.tensor(2), out = args.out();
  const uint32_t dim = axis(args.integer(3), self.rank(), "index_put"), call = graph.call_id();
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, "index_put: the index is %s", name(index.dtype()));
  check(self.dtype() == out.dtype() && values.dtype() == out.dtype(), "index_put: self is %s, values %s, output %s",
        name(self.dtype()), name(values.dtype()), name(out.dtype()));

  const Tensor table = graph.scratch(DType::i32, 1);
  graph.dispatch({table}, {index}, [=](Launch& launch) {
    const bool needed = index.numel() > kLook;
    table.resize({needed ? self.dim(dim) : 0});
    if (!needed) return;
    launch.params(glsl::index_put_last::Params{.positions = u32(index.numel()), .rows = u32(self.dim(dim))});
    launch.shader = &glsl::index_put_last::variant();
    launch.operations = static_cast<uint64_t>(self.dim(dim)) * static_cast<uint64_t>(index.numel());
    const auto rows = static_cast<uint64_t>(self.dim(dim));
    if (search_together(index.numel()))
      launch.over_groups(rows, kTogetherLanes);
    else
      launch.over(rows);
    launch.spec.push_back(search_together(index.numel()));
  });
  graph.dispatch_in_place({out, graph.status()}, {self, index, values, table}, [=](Launch& launch) {
    out.resize(self.shape());
    Shape expected = self.shape();
    expected.erase(expected.begin() + dim);
    expected.insert(expected.begin() + dim, index.shape().begin(), index.shape().end());
    check(values.numel() == product(expected, 0, expected.size()), "index_put: %lld values for %lld places",
          static_cast<long long>(values.numel()), static_cast<long long>(product(expected, 0, expected.size())));
    const uint32_t inner = u32(self.numel(dim + 1, self.rank()));
    const bool in_place = launch.graph.shares(out, self), whole_vec4s = inner % 4 == 0;
    const uint32_t part = !in_place ? UPDATE_ALL : whole_vec4s ? UPDATE_PART : UPDATE_TOUCH;
    glsl::index_put::Params params{.count = u32(out.numel()),
                                   .values = u32(values.numel()),
                                   .positions = u32(index.numel()),
                                   .rows = u32(self.dim(dim)),
                                   .inner = inner,
                                   .call = call};
    if (out.numel() == 0 || (in_place && values.numel() == 0)) return;
    if (in_place) launch.bytes = index.bytes() + 2 * values.bytes();
    launch.params(params);
    launch.shader = &glsl::index_put::variant(bits<glsl::index_put::BITS>(out.dtype()));
    const uint32_t items = ((part == UPDATE_PART ? params.values : params.count) + 3) / 4;
    launch.over(std::max(items, params.positions));
    launch.spec.insert(launch.spec.end(), {part, whole_vec4s, index.numel() > kLook});
  });
}

}  // namespace

std::span<const Op> index_put_ops() {
  static constexpr Op kOps[] = {
      {{"index_put", 1, "Tensor self, Tensor index, Tensor values, int dim -> Tensor"},
       index_put,
       glsl::index_put::axes,
       {"self=T[9,8] index=i32[3]{0..8} values=T[3,8] dim=0; "
        "self=T[3,9,2] index=i64[4]{-9..8}|i64[4]{8..12} values=T[3,4,2] dim=1; "
        "self=T[40,7] index=i32[20]{0..39} values=T[20,7] dim=0; "
        "self=T[5,3] index=i32[65600]{-5..4} values=T[65600,3] dim=0",
        "self=f16[1024,768] index=i32[64]{0..1023} values=f16[64,768] dim=0", reference::index_put}}};
  return kOps;
}

}  // namespace pumice::engine
