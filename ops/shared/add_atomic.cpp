// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/add_atomic.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "glsl/add_atomic.h"
#include "glsl/scatter_rows_atomic.h"
#include "ops/shared/shape.h"
#include "ops/shared/sort_rows.h"

namespace pumice::engine {
namespace {

// The workgroups of glsl/scatter_rows_atomic.glsl.
struct Tiles {
  uint32_t columns, parts, tiles, slabs;
};

// A workgroup reads a sector of memory, eight floats, of neighbouring rows; all indices of a row are read by each of
// its parts, so that there are few.
constexpr uint32_t kMostColumns = 8, kMostParts = 4, kLeastGroups = 64, kLeastExtent = 256;

Tiles tiles_of(const Rows& rows, const Features& features) {
  const uint32_t columns = std::min(std::bit_ceil(rows.inner), kMostColumns);
  const int64_t most = features.max_shared_bytes / (4 * columns);
  return {.columns = columns,
          .parts = u32(ceil_div(int64_t{rows.extent}, most)),
          .tiles = u32(ceil_div(int64_t{rows.inner}, int64_t{columns})),
          .slabs = rows.count / rows.inner};
}

// Whether shared memory takes the rows, and there are enough of them to fill a GPU.
bool by_rows(const AtomicScatter& s, const Features& features) {
  for (uint32_t d = 0; d < s.self.rank(); ++d)
    if (d != s.dim && (s.index.dim(d) != s.self.dim(d) || s.src.dim(d) != s.self.dim(d))) return false;
  const Rows rows(s.self, s.dim);
  const Tiles t = tiles_of(rows, features);
  return rows.extent >= kLeastExtent && t.parts <= kMostParts && t.parts * t.tiles * t.slabs >= kLeastGroups &&
         s.index.dim(s.dim) <= 1 << 16;
}

void launch_rows(const AtomicScatter& s, Launch& launch) {
  const Rows rows(s.self, s.dim);
  const Tiles t = tiles_of(rows, launch.features);
  const uint32_t part = (rows.extent + t.parts - 1) / t.parts, groups = t.parts * t.tiles * t.slabs;
  launch.params(glsl::scatter_rows_atomic::Params{.groups = groups,
                                                  .parts = t.parts,
                                                  .tiles = t.tiles,
                                                  .extent = rows.extent,
                                                  .indices = u32(s.index.dim(s.dim)),
                                                  .terms = u32(s.src.dim(s.dim)),
                                                  .inner = rows.inner,
                                                  .call = s.call});
  launch.shader = &glsl::scatter_rows_atomic::variant();
  launch.over_groups(groups, std::min(512u, std::bit_floor(launch.features.max_invocations)));
  launch.spec.insert(launch.spec.end(), {t.columns, part});
}

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
  if (by_rows(*this, launch.features)) return launch_rows(*this, launch);
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
