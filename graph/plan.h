// SPDX-License-Identifier: Apache-2.0
// Gate 4: offsets in the arena, where values that do not live at once share memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pumice::engine {

// Alive from `first` to `last`, both included. alignment: a power of two.
struct Interval {
  uint32_t first, last;
  uint64_t bytes, alignment;
};

struct Plan {
  std::vector<uint64_t> offsets;  // one for each interval
  uint64_t total = 0;
  uint64_t lower_bound = 0;  // no plan can be smaller: the most bytes alive at once
  uint64_t naive = 0;        // bytes where nothing is shared
};

// Pure. Intervals that share a step never share a byte; total <= naive. Throws LimitExceeded where 2^63 bytes are
// passed, BadGraph for an interval that ends before it begins or an alignment that is no power of two.
Plan plan(std::span<const Interval> intervals);

}  // namespace pumice::engine
