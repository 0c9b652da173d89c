// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 63;
// Up to this many intervals, by_size compares every pair and gives the denser plan; for more, by_time is fast enough.
constexpr size_t kMaxPairwise = 2048;

uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

// Bytes rounded up to the largest alignment, so that every gap is aligned for every interval.
std::vector<uint64_t> rounded(std::span<const Interval> intervals, uint64_t& naive) {
  uint64_t alignment = 1;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const Interval& interval = intervals[i];
    if (interval.last < interval.first || interval.alignment == 0 ||
        (interval.alignment & (interval.alignment - 1)) != 0)
      fail(Code::BadGraph, Stage::plan, format("plan[%zu]", i), "alive from %u to %u, aligned to %" PRIu64,
           interval.first, interval.last, interval.alignment);
    alignment = std::max(alignment, interval.alignment);
  }
  std::vector<uint64_t> sizes;
  naive = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    const uint64_t bytes = intervals[i].bytes;
    const bool fits = bytes < kMaxBytes && alignment < kMaxBytes && round_up(bytes, alignment) < kMaxBytes - naive;
    if (!fits)
      fail(Code::LimitExceeded, Stage::plan, format("plan[%zu]", i),
           "%" PRIu64 " bytes beside %" PRIu64 " pass the limit of 2^63", bytes, naive);
    sizes.push_back(round_up(bytes, alignment));
    naive += sizes.back();
  }
  return sizes;
}

std::vector<uint32_t> order_of_time(std::span<const Interval> intervals) {
  std::vector<uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return intervals[a].first < intervals[b].first; });
  return order;
}

// Calls begin(i) in order of time, and end(i) before the first begin after it.
template <class Begin, class End>
void sweep(std::span<const Interval> intervals, const Begin& begin, const End& end) {
  std::multimap<uint32_t, uint32_t> alive;  // by last step
  for (const uint32_t i : order_of_time(intervals)) {
    while (!alive.empty() && alive.begin()->first < intervals[i].first) {
      end(alive.begin()->second);
      alive.erase(alive.begin());
    }
    begin(i);
    alive.emplace(intervals[i].last, i);
  }
}

// Largest first, each at the lowest gap between those placed that live with it.
Plan by_size(std::span<const Interval> intervals, const std::vector<uint64_t>& sizes) {
  std::vector<uint32_t> order = order_of_time(intervals);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return sizes[a] > sizes[b]; });
  Plan plan{.offsets = std::vector<uint64_t>(intervals.size())};
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t i : order) {
    uint64_t at = 0;
    for (const uint32_t other : placed) {
      if (intervals[other].last < intervals[i].first || intervals[i].last < intervals[other].first) continue;
      if (plan.offsets[other] >= at && plan.offsets[other] - at >= sizes[i]) break;
      at = std::max(at, plan.offsets[other] + sizes[other]);
    }
    plan.offsets[i] = at;
    plan.total = std::max(plan.total, at + sizes[i]);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](uint32_t a, uint32_t b) { return plan.offsets[a] < plan.offsets[b]; }),
                  i);
  }
  return plan;
}

// In order of time, each in the smallest gap that holds it.
Plan by_time(std::span<const Interval> intervals, const std::vector<uint64_t>& sizes) {
  Plan plan{.offsets = std::vector<uint64_t>(intervals.size())};
  std::map<uint64_t, uint64_t> free;                     // offset -> bytes; neighbours are joined
  std::set<std::pair<uint64_t, uint64_t>> free_by_size;  // bytes, offset
  const auto remove_gap = [&](std::map<uint64_t, uint64_t>::iterator gap) {
    free_by_size.erase({gap->second, gap->first});
    return free.erase(gap);
  };
  const auto add_gap = [&](uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = remove_gap(next);
    }
    if (next != free.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
      const auto before = std::prev(next);
      offset = before->first;
      bytes += before->second;
      remove_gap(before);
    }
    free.emplace(offset, bytes);
    free_by_size.emplace(bytes, offset);
  };
  const auto begin = [&](uint32_t i) {
    if (sizes[i] == 0) return;
    const auto fit = free_by_size.lower_bound({sizes[i], 0});
    if (fit == free_by_size.end()) {  // the arena grows; a gap at its end is used first
      const bool open = !free.empty() && std::prev(free.end())->first + std::prev(free.end())->second == plan.total;
      const uint64_t at = open ? std::prev(free.end())->first : plan.total;
      if (open) remove_gap(std::prev(free.end()));
      plan.offsets[i] = at;
      plan.total = at + sizes[i];
      return;
    }
    const auto [bytes, offset] = *fit;
    remove_gap(free.find(offset));
    plan.offsets[i] = offset;
    add_gap(offset + sizes[i], bytes - sizes[i]);
  };
  sweep(intervals, begin, [&](uint32_t i) { add_gap(plan.offsets[i], sizes[i]); });
  return plan;
}

}  // namespace

Plan plan(std::span<const Interval> intervals) {
  uint64_t naive = 0, alive = 0, lower_bound = 0;
  const std::vector<uint64_t> sizes = rounded(intervals, naive);
  sweep(
      intervals, [&](uint32_t i) { lower_bound = std::max(lower_bound, alive += sizes[i]); },
      [&](uint32_t i) { alive -= sizes[i]; });
  Plan best = by_time(intervals, sizes);
  if (best.total > lower_bound && intervals.size() <= kMaxPairwise) {
    Plan other = by_size(intervals, sizes);
    if (other.total < best.total) best = std::move(other);
  }
  best.lower_bound = lower_bound;
  best.naive = naive;
  return best;
}

}  // namespace pumice::engine
