// SPDX-License-Identifier: Apache-2.0
// The heads of a tensor of rank 4 that attention reads or writes in place: all, or some of them next to each other, as
// where one product made queries, keys and values.
#pragma once

#include <array>

#include "graph/graph.h"

namespace pumice::engine {

struct HeadSlice {
  int64_t batch, heads, rows, size;  // heads: of the slice
  bool blhd = false;                 // the tensor is [batch, rows, heads, size] in memory, not heads first
  int64_t first = 0, others = 0;     // heads of the tensor in front of the slice, and all that are not in it

  std::array<int64_t, 3> strides() const;  // of batch, head and row, in elements
  int64_t begin() const;                   // the slice's first element
  int64_t elements() const;                // of the tensor
};

HeadSlice all_heads(const Tensor& t, bool blhd);
// Throws where the tensor does not have these heads.
HeadSlice some_heads(const Tensor& t, bool blhd, int64_t first, int64_t heads);

}  // namespace pumice::engine
