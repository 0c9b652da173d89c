// SPDX-License-Identifier: Apache-2.0
// out = self, but its slice start:end:step of dimension `dim` is `source`. In place when `self` is a state.
#include "glsl/slice_scatter.h"

#include <algorithm>

#include "base/divide.h"
#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void slice_scatter(Graph& graph, Args args) {
  const Tensor self = args.tensor(0), source = args.tensor(1), out = args.out();
  const uint32_t dim = axis(args.integer(2), self.rank(), "slice_scatter");
  const SymInt start = args.size(3), end = args.size(4);
  const int64_t step = slice_step(args.integer(5), "slice_scatter");
  check(self.dtype() == out.dtype() && source.dtype() == out.dtype(), "slice_scatter: self is %s, source %s, output %s",
        name(self.dtype()), name(source.dtype()), name(out.dtype()));
  graph.dispatch_in_place({out}, {self, source}, [=](Launch& launch) {
    out.resize(self.shape());
    const int64_t size = self.dim(dim), inner = self.numel(dim + 1, self.rank());
    const int64_t first = bounded(launch.place(start), size), last = std::max(bounded(launch.place(end), size), first);
    const int64_t extent = ceil_div(last - first, step);
    Shape expected = self.shape();
    expected[dim] = extent;
    check(source.numel() == product(expected, 0, expected.size()),
          "slice_scatter: source has %lld elements, the slice %lld", static_cast<long long>(source.numel()),
          static_cast<long long>(product(expected, 0, expected.size())));
    const bool in_place = launch.graph.shares(out, self);
    if (out.numel() == 0 || (in_place && source.numel() == 0)) return;
    glsl::slice_scatter::Params params{.count = u32(out.numel()),
                                       .items = vec4_groups(out),
                                       .slab = u32(size * inner),
                                       .begin = u32(first * inner),
                                       .end = u32((extent > 0 ? first + (extent - 1) * step + 1 : first) * inner),
                                       .inner = u32(inner),
                                       .step = u32(step),
                                       .extent = u32(extent),
                                       .part_vec4s = 0};
    const uint32_t part = !in_place ? UPDATE_ALL : params.slab % 4 == 0 ? UPDATE_PART : UPDATE_TOUCH;
    if (part == UPDATE_PART) {
      params.part_vec4s = (params.end + 3) / 4 - params.begin / 4;
      params.items = params.count / params.slab * params.part_vec4s;
    }
    if (in_place) launch.bytes = 2 * source.bytes();
    launch.params(params);
    launch.shader = &glsl::slice_scatter::variant(bits<glsl::slice_scatter::BITS>(out.dtype()));
    launch.over(params.items);
    launch.spec.push_back(part);
  });
}

}  // namespace

std::span<const Op> slice_scatter_ops() {
  static constexpr Op kOps[] = {
      {{"slice_scatter", 1, "Tensor self, Tensor source, int dim, size start, size end, int step -> Tensor"},
       slice_scatter,
       glsl::slice_scatter::axes,
       {"self=T[3,9,5] source=T[3,4,5] dim=1 start=1 end=8 step=2; "
        "self=i64[3,9] source=i64[3,4] dim=-1 start=-7 end=100 step=2; "
        "self=i8[16] source=i8[8] dim=0 start=4 end=12 step=1",
        "self=f16[32,256,256] source=f16[32,64,256] dim=1 start=64 end=128 step=1", reference::slice_scatter}}};
  return kOps;
}

}  // namespace pumice::engine
