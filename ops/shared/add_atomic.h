// SPDX-License-Identifier: Apache-2.0
// scatter_add and index_add of f32 by atomics: in any order, so that the last bits differ from run to run. Taken where
// the feature float_atomics is asked for.
#pragma once

#include "graph/graph.h"

namespace pumice::engine {

// Whether `graph` adds to a tensor of this dtype by atomics.
bool adds_by_atomics(const Graph& graph, DType dtype);

// Of scatter_add: out = self, then out[.., index[p], ..] += src[p] along `dim` for every p of the index, whose rank is
// that of self. The output has its shape, and the shapes fit. Bindings: out, status; self, index, src.
struct AtomicScatter {
  Tensor out, self, index, src;
  uint32_t dim, call;
  void launch(Launch& launch) const;
};

// The same of index_add, where the index is one for all rows of `dim`: src has positions of it in place of the
// dimension. The output may have the memory of self.
struct AtomicIndexAdd {
  Tensor out, self, index, src;
  uint32_t dim, call;
  void launch(Launch& launch) const;
};

}  // namespace pumice::engine
