// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/add_atomic.h"

#include "glsl/add_atomic.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// `params`: all but the count. Two dispatches, one where the output has the memory of self.
void launch_adds(Launch& launch, glsl::add_atomic::Params params, const Tensor& out, bool in_place, int64_t adds,
                 bool along) {
  const auto dispatch = [&](int64_t count, uint64_t items, bool copies) {
    params.count = u32(count);
    launch.params(params);
    launch.shader = &glsl::add_atomic::variant();
    launch.over(items);
    launch.spec.insert(launch.spec.end(), {uint32_t{copies}, uint32_t{along}});
  };
  if (!in_place) dispatch(out.numel(), vec4_groups(out), true);
  if (adds == 0) return;
  if (!in_place) launch.next_dispatch();
  dispatch(adds, static_cast<uint64_t>(adds), false);
}

void put(uint32_t (&to)[kMaxRank], std::span<const int64_t> sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) to[d] = u32(sizes[d]);
}

}  // namespace

bool adds_by_atomics(const Graph& graph, DType dtype) {
  return graph.features().has(Feature::float_atomics) && dtype == DType::f32;
}

void AtomicScatter::launch(Launch& launch) const {
  glsl::add_atomic::Params params{.count = 0, .rank = self.rank(), .dim = dim, .call = call};
  put(params.size, self.shape());
  put(params.walk, index.shape());
  put(params.stride, contiguous_strides(src.shape()));
  launch_adds(launch, params, out, false, index.numel(), false);
}

void AtomicIndexAdd::launch(Launch& launch) const {
  const int64_t outer = self.numel(0, dim), inner = self.numel(dim + 1, self.rank()), places = index.numel();
  glsl::add_atomic::Params params{.count = 0, .rank = 3, .dim = 1, .call = call};
  put(params.size, Shape{outer, self.dim(dim), inner});
  put(params.walk, Shape{outer, places, inner});
  put(params.stride, contiguous_strides({outer, places, inner}));
  launch_adds(launch, params, out, launch.graph.shares(out, self), outer * places * inner, true);
}

}  // namespace pumice::engine
