// SPDX-License-Identifier: Apache-2.0
// Calls on tensors larger than a binding of the device (maxStorageBufferRange), cut into boxes of their indices. Pure.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

using Dims = std::array<int64_t, 8>;  // of a call, the outermost first; those that it does not have come last

// Indices of a call: for each dimension the first one and how many.
struct Box {
  Dims first, count;
};

// Which bytes of a tensor a box touches.
struct Touched {
  uint64_t unit, total;  // bytes of one index, and of the tensor
  Dims stride;           // bytes from an index to the next, in each dimension; 0: all indices touch the same
  int64_t base = 0;      // byte of the first index
  bool shifts = false;   // the kernel can begin after the first byte of its binding
};

// Boxes, the outermost dimension cut first, so that no tensor has more bytes in one than a binding takes, and bindings
// begin at multiples of Features::storage_alignment. One box of all where there is nothing to cut, or where cutting
// does not help: check_bindings then names the value. A size of 0 is taken for 1: a dimension that there is not.
std::vector<Box> boxes(const Dims& sizes, std::span<const Touched> tensors, const Features& features);

// Of a multiple of these bytes a binding may begin.
int64_t binding_alignment(const Features& features);

// Of bindings; up to the end of a tensor where the box has the end.
std::vector<BindingRange> ranges_of(std::span<const Touched> tensors, const Box& box, const Features& features);

}  // namespace pumice::engine
