// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/split.h"

#include <algorithm>

namespace pumice::engine {

std::vector<RowRange> split_rows(uint32_t rows, std::initializer_list<uint64_t> row_bytes, const Features& features,
                                 uint64_t most) {
  const uint64_t row = std::max<uint64_t>(std::max(row_bytes), 1), limit = features.max_storage_bytes;
  const uint64_t unit = std::max<uint64_t>(features.storage_alignment, 16);  // powers of two
  if (rows <= std::min(limit, most) / row || limit / row < unit) return {{0, rows}};
  const uint64_t fits = std::max(std::min(limit, most) / row / unit * unit, unit);
  std::vector<RowRange> blocks;
  for (uint64_t first = 0; first < rows; first += fits)
    blocks.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(std::min(fits, rows - first))});
  return blocks;
}

}  // namespace pumice::engine
