// SPDX-License-Identifier: Apache-2.0
// Tensors larger than a binding of the device (maxStorageBufferRange), taken in blocks of rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

struct RowRange {
  uint32_t first, count;
};

// QuantBlocks of `rows` rows so that none of the tensors with `row_bytes` has more in one than a binding takes, and not
// more than `most` where that leaves a choice. Their first rows are multiples of 16 and of Features::storage_alignment,
// so that binding ranges of whole rows are aligned for any number of bytes in a row. Where not even that many rows fit,
// one block of all rows: check_weights and check_bindings then name the value.
std::vector<RowRange> split_rows(uint32_t rows, std::initializer_list<uint64_t> row_bytes, const Features& features,
                                 uint64_t most = ~uint64_t{0});

// The binding range of a block in a tensor with rows of that many bytes; up to the end for the last block.
inline BindingRange binding_range(const RowRange& block, uint32_t rows, uint64_t row_bytes) {
  const bool last = block.first + block.count == rows;
  return {block.first * row_bytes, last ? 0 : block.count * row_bytes};
}

}  // namespace pumice::engine
