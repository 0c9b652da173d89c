// SPDX-License-Identifier: Apache-2.0
#include "graph/boxes.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace pumice::engine {
namespace {

constexpr size_t kMostBoxes = 4096;  // of a call: each is a dispatch to plan and to record

struct Bytes {
  int64_t begin, end;
};

// Sizes of tensors are below 2^33 bytes, and so is every sum here.
Bytes bytes_of(const Touched& tensor, const Box& box) {
  Bytes bytes{tensor.base, tensor.base};
  for (size_t d = 0; d < std::size(box.first); ++d) {
    const int64_t first = box.first[d] * tensor.stride[d], last = first + (box.count[d] - 1) * tensor.stride[d];
    bytes.begin += std::min(first, last);
    bytes.end += std::max(first, last);
  }
  bytes.end += static_cast<int64_t>(tensor.unit);
  return bytes;
}

struct Cutter {
  std::span<const Touched> tensors;
  int64_t alignment, limit;
  std::vector<Box> done = {};

  int64_t bound(const Touched& tensor, const Box& box) const {
    const auto [begin, end] = bytes_of(tensor, box);
    return std::min(end - begin + (tensor.shifts ? alignment : 0), static_cast<int64_t>(tensor.total));
  }

  // Appends the boxes of `box`; false where it cannot be cut.
  bool cut(const Box& box) {
    if (std::all_of(tensors.begin(), tensors.end(), [&](const Touched& t) { return bound(t, box) <= limit; })) {
      done.push_back(box);
      return done.size() <= kMostBoxes;
    }
    const auto outer = std::find_if(box.count.begin(), box.count.end(), [](int64_t n) { return n > 1; });
    if (outer == box.count.end()) return false;
    const auto d = static_cast<size_t>(outer - box.count.begin());
    Box part = box;
    part.count[d] = 1;
    int64_t most = *outer, unit = 1;
    for (const Touched& tensor : tensors) {
      const int64_t step = std::abs(tensor.stride[d]), room = limit - bound(tensor, part);
      if (step == 0) continue;
      if (!tensor.shifts) unit = std::max(unit, alignment / std::gcd(alignment, step));
      most = std::min(most, room < 0 ? 1 : room / step + 1);
    }
    // Where these fit, it is another tensor that does not: only a dimension further in can help.
    most = most == *outer ? unit : most / unit * unit;
    if (most == 0 || most >= *outer) return false;
    for (const int64_t end = box.first[d] + *outer; part.first[d] < end; part.first[d] += most) {
      part.count[d] = std::min(most, end - part.first[d]);
      if (!cut(part)) return false;
    }
    return true;
  }
};

}  // namespace

int64_t binding_alignment(const Features& features) {
  return static_cast<int64_t>(std::max<uint64_t>(features.storage_alignment, 16));  // powers of two; 16: a vec4 group
}

std::vector<Box> boxes(const Dims& sizes, std::span<const Touched> tensors, const Features& features) {
  Box all{{}, sizes};
  for (int64_t& count : all.count) count = std::max<int64_t>(count, 1);
  Cutter cutter{tensors, binding_alignment(features), static_cast<int64_t>(features.max_storage_bytes / 16 * 16)};
  if (!cutter.cut(all)) return {all};
  return std::move(cutter.done);
}

std::vector<BindingRange> ranges_of(std::span<const Touched> tensors, const Box& box, const Features& features) {
  std::vector<BindingRange> ranges;
  for (const Touched& tensor : tensors) {
    const auto [first, end] = bytes_of(tensor, box);
    const int64_t begin = tensor.shifts ? first - first % binding_alignment(features) : first;
    const auto bytes = static_cast<uint64_t>(end - begin);
    ranges.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(end) == tensor.total ? 0 : bytes});
  }
  return ranges;
}

}  // namespace pumice::engine
