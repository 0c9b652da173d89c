// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/sort_rows.h"

#include <algorithm>
#include <bit>

#include "glsl/sort.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kMostOfBlock = 1024;  // of glsl/sort.glsl
constexpr uint32_t kMostBlocks = 8;      // of a span: more of them leave a GPU too few workgroups

uint32_t block_of(uint32_t n) {
  return std::min(std::bit_ceil(std::max(n, 2U)), kMostOfBlock);
}

uint32_t span_of(uint32_t n, uint32_t keep) {
  return block_of(n) * std::clamp(block_of(n) / keep, 1U, kMostBlocks);
}

// What spans leave of a row of n when each keeps so many.
uint32_t kept_of(uint32_t n, uint32_t keep) {
  const uint32_t span = span_of(n, keep), whole = (n - 1) / span;
  return whole * keep + std::min(keep, n - whole * span);
}

// The steps of a sort, in the order in which they run; each reads the pairs that the one before it wrote.
struct Steps {
  Launch& launch;
  const Shader& shader;
  glsl::sort::Params params;
  uint32_t descending, left;  // left: steps that are to come
  uint32_t block = 0;

  // Of a row of n: what is sorted at once, and what a workgroup takes.
  void set_row(uint32_t n, bool few) {
    params.extent = n;
    block = block_of(n);
    params.span = few ? span_of(n, params.keep) : block;
  }
  uint64_t groups() const { return uint64_t{params.rows} * ((params.extent + params.span - 1) / params.span); }

  // The last one writes a_, which the caller reads.
  void add(glsl::sort::STEP step, uint64_t groups_or_items) {
    if (!launch.push.empty()) launch.next_dispatch();
    params.to_b = --left % 2;
    launch.params(params);
    launch.shader = &shader;
    if (step == glsl::sort::STEP::merge)
      launch.over(groups_or_items);
    else
      launch.over_groups(groups_or_items, lanes());
    launch.spec.insert(launch.spec.end(),
                       {static_cast<uint32_t>(step), descending, block, uint32_t{params.span > block}});
  }

  uint32_t lanes() const {
    const bool many = params.span > block && !launch.features.cpu;
    return std::clamp(block / 2, 32U, many ? std::min(512U, std::bit_floor(launch.features.max_invocations)) : 128U);
  }
};

}  // namespace

Rows::Rows(const Tensor& x, uint32_t dim) {
  extent = x.rank() == 0 ? 1 : u32(x.dim(dim));
  inner = x.rank() == 0 ? 1 : u32(x.numel(dim + 1, x.rank()));
  count = extent == 0 ? 0 : u32(x.numel() / extent);
}

Tensor sort_rows(Graph& graph, Tensor x, uint32_t dim, bool descending, std::function<int64_t(const Launch&)> keep) {
  const Tensor a = graph.scratch(DType::i32, 1), b = graph.scratch(DType::i32, 1);
  graph.dispatch({a, b}, {x}, [=](Launch& launch) {
    using glsl::sort::STEP;
    const Rows rows(x, dim);
    const uint32_t block = block_of(rows.extent);
    const auto kept = static_cast<uint32_t>(std::min<int64_t>(keep(launch), rows.extent));
    const bool few = kept <= kFewKept && rows.extent > block;
    const int64_t words = kept == 0 ? 0 : 2 * x.numel();
    u32(words);
    a.resize({words});
    b.resize({rows.extent > block ? words : 0});
    if (words == 0) return;

    uint32_t steps = 1;
    if (few)
      for (uint32_t n = rows.extent; (n = kept_of(n, kept)) > kept;) ++steps;
    else
      for (uint64_t run = block; run < rows.extent; run *= 2) ++steps;
    Steps sort{launch,
               glsl::sort::variant(glsl::sort::dtype(x.dtype())),
               {.rows = rows.count, .inner = rows.inner, .stride = rows.extent},
               descending,
               steps};
    sort.params.keep = few ? kept : block;
    sort.set_row(rows.extent, few);
    sort.add(STEP::from_x, sort.groups());
    if (few) {
      for (uint32_t n = rows.extent; (n = kept_of(n, kept)) > kept;) {
        sort.set_row(n, few);
        sort.add(STEP::blocks, sort.groups());
      }
      return;
    }
    for (uint64_t run = block; run < rows.extent; run *= 2) {
      sort.params.run = u32(static_cast<int64_t>(run));
      sort.add(STEP::merge, uint64_t{rows.count} * rows.extent);
    }
  });
  return a;
}

}  // namespace pumice::engine
