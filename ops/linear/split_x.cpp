// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/split_x.h"

#include <algorithm>
#include <bit>

#include "glsl/linear_split.h"
#include "ops/linear/pick.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// Four vec4 groups of a row for each lane, which keeps them where they are not many more. H200, MiniLM with 4,096 rows,
// us: 21 with 256 lanes that read the row twice, 21 with these, 9.5 by split_four.
void split_rows_of(Launch& launch, uint32_t rows, uint32_t k) {
  constexpr uint32_t kGroups = 4, kMostHeld = 8;
  const uint32_t tiles = panel_tiles(k), groups = tiles * (kTileColumns / 4);
  const uint32_t most = std::bit_floor(std::min(256U, launch.features.max_invocations));
  const uint32_t lanes = std::min(std::max(std::bit_ceil(groups / kGroups), 32U), most);
  const uint32_t held = (groups + lanes - 1) / lanes;
  const bool quick = launch.features.has(Feature::fragments) || launch.features.cpu;  // conversions to fp16 are exact
  launch.over_groups(rows, lanes);
  launch.params(glsl::linear_split::Params{.m = rows, .k = k, .tiles = tiles});
  launch.spec.insert(launch.spec.end(), {k % 4 == 0, quick, held <= kMostHeld ? held : 0});
  launch.shader = &glsl::linear_split::variant();
}

}  // namespace

bool may_split_x(const Features& features, const Tensor& x, const PackedWeight& weight) {
  LinearShape shape = product_shape(weight, x.dtype(), 1);
  shape.may_split = true;
  // pick_split takes one only where it was measured; other devices are spared nodes that never run.
  const LinearKernel* forced = forced_linear(features);
  return ((forced != nullptr && forced->input == Input::split) || features.has(Feature::fragments)) &&
         may_read(Input::split, shape, features);
}

bool may_split_weight(const Features& features, LinearShape shape) {
  shape.m = 1;  // what a kernel cannot do does not depend on it
  shape.split_weight = true;
  const auto kernels = linear_kernels();
  return std::any_of(kernels.begin(), kernels.end(), [&](const LinearKernel& kernel) {
    return reads_split_weight(kernel, shape.weight) && unsupported_reason(kernel, shape, features).empty();
  });
}

std::shared_ptr<SplitX> split_x(Graph& graph, Tensor x, uint32_t k, std::function<bool(const Launch&)> wanted) {
  const auto made = graph.shared<SplitX>(format("split %u %u", x.id(), k));
  made->wanted.push_back(std::move(wanted));
  if (made->x) return made;
  made->x = graph.scratch(DType::f16, 3);
  made->rows = graph.scratch(DType::i32, 2);
  graph.dispatch({made->x, made->rows}, {x}, [=](Launch& launch) {
    const bool runs =
        std::any_of(made->wanted.begin(), made->wanted.end(), [&](const auto& each) { return each(launch); });
    const uint32_t m = runs ? u32(x.numel() / k) : 0, tiles = panel_tiles(k);
    made->x.resize({m, 2, int64_t{tiles} * kTileColumns});
    made->rows.resize({m, 2});
    const uint64_t split_bytes = uint64_t{4} * tiles * kTileColumns, x_bytes = uint64_t{4} * k, row_bytes = 8;
    const auto blocks = m == 0 ? std::vector<RowRange>{} : split_rows(m, {split_bytes, x_bytes}, launch.features);
    for (const RowRange& block : blocks) {
      split_rows_of(launch, block.count, k);
      if (blocks.size() == 1) return;
      launch.binding_ranges = {binding_range(block, m, split_bytes), binding_range(block, m, row_bytes),
                               binding_range(block, m, x_bytes)};
      launch.next_dispatch();
    }
  });
  return made;
}

}  // namespace pumice::engine
