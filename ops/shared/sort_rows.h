// SPDX-License-Identifier: Apache-2.0
// Rows of a tensor along a dimension, sorted: for sort, topk and scatter.
#pragma once

#include "graph/graph.h"

namespace pumice::engine {

// A tensor as rows along a dimension.
struct Rows {
  uint32_t count = 0, extent = 0, inner = 1;  // inner: distance between neighbouring elements of a row
  Rows(const Tensor& x, uint32_t dim);
};

// Adds the nodes that sort every row of x. Returns pairs {key, place}, two words each, those of row r at r * extent,
// where row o * inner + i begins at element i of slab o; a key of i32 and i64 is the number ^ 2^31. Equal keys are in
// the order of their places. `keep`: how many of a row are needed, by the live shapes; up to kFewKept of them take no
// full sort, and 0 none at all.
Tensor sort_rows(Graph& graph, Tensor x, uint32_t dim, bool descending, std::function<int64_t(const Launch&)> keep);
inline constexpr int64_t kFewKept = 64;

}  // namespace pumice::engine
