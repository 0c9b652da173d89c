// SPDX-License-Identifier: Apache-2.0
// In which batches constants are packed: a pure function, so that the memory they take is known before any is
// allocated.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/constant_source.h"

namespace pumice::engine {

// Dispatches [first, last), which run in one submit. `ranges` are uploaded for them, into one buffer of `bytes`.
struct PackBatch {
  size_t first = 0, last = 0;
  std::vector<ConstantRange> ranges = {};
  uint64_t bytes = 0;
  std::vector<size_t> done = {};  // the batches whose buffers nothing needs after this batch
};

// `reads[i]`: the temporary constants that dispatch i reads. Each is uploaded once, for its first reader. Linear in
// their number, but for a logarithm.
std::vector<PackBatch> pack_batches(std::span<const std::vector<ConstantRange>> reads, uint64_t alignment);

}  // namespace pumice::engine
