// SPDX-License-Identifier: Apache-2.0
// Gate 4: where every value of a run lies. Memory of values that do not live at once is shared.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vulkan/memory.h"

namespace pumice::engine {

class Graph;

// Alive from `first` to `last`, both included. alignment: a power of two.
struct Interval {
  uint32_t first, last;
  uint64_t bytes, alignment;
};

struct Plan {
  std::vector<uint64_t> offsets;  // one for each interval
  uint64_t total = 0;
  uint64_t lower_bound = 0;  // no plan can be smaller: the most bytes alive at once
  uint64_t naive = 0;        // every interval a place of its own
};

// Pure. Intervals that share a step never share a byte; total <= naive. Throws LimitExceeded where 2^63 bytes are
// passed, BadGraph for an interval that ends before it begins or an alignment that is no power of two.
Plan plan(std::span<const Interval> intervals);

// The plan of a graph at its live shapes.
struct Layout {
  std::vector<uint32_t> storage;  // of each tensor: the tensor whose storage it has
  std::vector<uint64_t> offset;   // of each tensor whose storage is in the arena
  std::vector<uint64_t> bytes;    // of each tensor; padded to 16, at least 16
  Plan plan;
  std::vector<ImageShape> images;  // of the run, each shared by textures of its shape that do not live at once
  std::vector<uint32_t> image;     // of each tensor in a texture: index in images
};

Layout layout(const Graph& graph);

}  // namespace pumice::engine
