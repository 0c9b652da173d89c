// SPDX-License-Identifier: Apache-2.0
#include "graph/pack_plan.h"

#include <algorithm>

#include "graph/suballocator.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{64} << 20;  // of temporary constants at once, unless one is larger
constexpr size_t kBatchDispatches = 1024;             // so that a load may stop between two batches

}  // namespace

std::vector<PackBatch> pack_batches(std::span<const std::vector<ConstantRange>> reads, uint64_t alignment) {
  std::vector<PackBatch> batches;
  std::vector<size_t> last_use;              // of the buffer of each batch: the last batch that reads it
  std::map<ConstantRange, size_t> uploaded;  // by which batch
  for (size_t i = 0; i < reads.size(); ++i) {
    std::vector<ConstantRange> fresh;
    uint64_t bytes = 0;
    for (const ConstantRange& range : reads[i]) {
      if (uploaded.contains(range) || std::find(fresh.begin(), fresh.end(), range) != fresh.end()) continue;
      fresh.push_back(range);
      bytes += padded(range.bytes, alignment);
    }
    const bool is_full = batches.empty() || i - batches.back().first >= kBatchDispatches ||
                         (batches.back().bytes > 0 && batches.back().bytes + bytes > kBatchBytes);
    if (is_full) {
      batches.push_back({.first = i});
      last_use.push_back(batches.size() - 1);
    }
    PackBatch& batch = batches.back();
    batch.last = i + 1;
    batch.bytes += bytes;
    for (const ConstantRange& range : fresh) {
      uploaded[range] = batches.size() - 1;
      batch.ranges.push_back(range);
    }
    for (const ConstantRange& range : reads[i]) last_use[uploaded[range]] = batches.size() - 1;
  }
  for (size_t b = 0; b < batches.size(); ++b) {
    if (batches[b].bytes > 0) batches[last_use[b]].done.push_back(b);
  }
  return batches;
}

}  // namespace pumice::engine
