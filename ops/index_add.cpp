// SPDX-License-Identifier: Apache-2.0
// out = self, then out[.., index[p], ..] += values[.., p, ..] along `dim`, for every position p, in order where they
// are fewer than 65536. A negative index counts from the end; one out of range, and an i64 sum that 32 bits cannot
// hold, are errors of the run.
//
// An element searches all positions for its own, so that the work is quadratic; where the feature float_atomics is
// asked for, sums of f32 are made by atomics (ops/shared/add_atomic.h): in any order.
//
// Error of floats: |err| <= u |y| + 2^-24 * the sum of the sizes of the partial sums of the element.
#include "glsl/index_add.h"

#include <algorithm>

#include "ops/op.h"
#include "ops/reference/indices.h"
#include "ops/shared/add_atomic.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

void index_add(Graph& graph, Args args) {
  const Tensor self = args.tensor(0), index = args.tensor(1), values = args.tensor(2), out = args.out();
  const uint32_t dim = axis(args.integer(3), self.rank(), "index_add"), call = graph.call_id();
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, "index_add: the index is %s", name(index.dtype()));
  check(self.dtype() == out.dtype() && values.dtype() == out.dtype(), "index_add: self is %s, values %s, output %s",
        name(self.dtype()), name(values.dtype()), name(out.dtype()));
  const bool atomic = adds_by_atomics(graph, out.dtype());
  graph.dispatch_in_place({out, graph.status()}, {self, index, values}, [=](Launch& launch) {
    out.resize(self.shape());
    Shape expected = self.shape();
    expected.erase(expected.begin() + dim);
    expected.insert(expected.begin() + dim, index.shape().begin(), index.shape().end());
    check(values.numel() == product(expected, 0, expected.size()), "index_add: %lld values for %lld places",
          static_cast<long long>(values.numel()), static_cast<long long>(product(expected, 0, expected.size())));
    if (out.numel() == 0) return;
    if (atomic) return AtomicIndexAdd{out, self, index, values, dim, call}.launch(launch);
    const uint32_t positions = u32(index.numel());
    launch.params(glsl::index_add::Params{.count = u32(out.numel()),
                                          .positions = positions,
                                          .rows = u32(self.dim(dim)),
                                          .inner = u32(self.numel(dim + 1, self.rank())),
                                          .call = call});
    launch.shader = &glsl::index_add::variant(glsl::index_add::dtype(out.dtype()));
    launch.operations = static_cast<uint64_t>(out.numel()) * positions;
    if (search_together(positions))
      launch.over_groups(vec4_groups(out), kTogetherLanes);
    else
      launch.over(std::max(vec4_groups(out), positions));
    launch.spec.push_back(search_together(positions));
  });
}

}  // namespace

std::span<const Op> index_add_ops() {
  static constexpr Op kOps[] = {
      {{"index_add", 1, "Tensor self, Tensor index, Tensor values, int dim -> Tensor"},
       index_add,
       glsl::index_add::axes,
       {"self=T[5,8] index=i32[3]{0..4} values=T[3,8] dim=0; "
        "self=T[3,9] index=i32[4]{0..8} values=T[3,4] dim=1; "
        "self=T[3,9] index=i64[4]{-9..8} values=T[3,4] dim=1; "
        "self=i64[3,9] index=i64[4]{-9..8}|i64[4]{8..12} values=i64[3,4] dim=1; "
        "self=i64[2]{2000000000..2100000000} index=i64[3]{0..1} "
        "values=i64[3]{2000000000..2100000000} dim=0; "
        "self=T[2,3,5] index=i32[65600]{0..2} values=T[2,65600,5] dim=1; "
        "self=i64[3] index=i64[65600]{-3..2}|i64[65600]{2..3} values=i64[65600] dim=0",
        "self=f32[1024,768] index=i32[64]{0..1023} values=f32[64,768] dim=0", reference::index_add}}};
  return kOps;
}

}  // namespace pumice::engine
