// SPDX-License-Identifier: Apache-2.0
#include "graph/hazard.h"

#include <algorithm>

#include "base/error.h"

namespace pumice::engine {
namespace {

// What was touched since the last barrier. Long lists are cut by a barrier, which is cheaper than searching them.
class Pending {
 public:
  bool blocks(const Step& step) const {
    if (writes_.size() + reads_.size() > 1024) return true;
    for (const Range& write : step.writes) {
      const bool atomic = write.space == kStatus && step.kind == StepKind::dispatch;
      if ((!atomic && touches(writes_, write)) || touches(reads_, write)) return true;
    }
    return std::any_of(step.reads.begin(), step.reads.end(), [&](const Range& read) { return touches(writes_, read); });
  }
  void add(const Step& step) {
    writes_.insert(writes_.end(), step.writes.begin(), step.writes.end());
    std::copy_if(step.reads.begin(), step.reads.end(), std::back_inserter(reads_),
                 [](const Range& read) { return read.space != kFixed; });
  }
  void clear() {
    writes_.clear();
    reads_.clear();
  }

 private:
  static bool touches(const std::vector<Range>& list, const Range& range) {
    return std::any_of(list.begin(), list.end(), [&](const Range& other) {
      return other.space == range.space && other.begin < range.end && range.begin < other.end;
    });
  }
  std::vector<Range> writes_, reads_;
};

}  // namespace

void place_barriers(std::vector<Step>& steps) {
  Pending pending;
  for (Step& step : steps) {
    if (step.kind == StepKind::host) continue;
    step.barrier = pending.blocks(step);
    if (step.barrier) pending.clear();
    pending.add(step);
  }
}

// ---- the other opinion
// ----------------------------------------------------------------------------------------------------
namespace {

struct Touch {
  size_t step;
  Range range;
  bool write;
};

bool is_atomic(std::span<const Step> steps, const Touch& touch) {
  return touch.range.space == kStatus && steps[touch.step].kind == StepKind::dispatch;
}

std::string text(std::span<const Step> steps, const Touch& touch) {
  return format("step %zu (node %d) %s bytes %llu to %llu of space %u, content %d", touch.step,
                static_cast<int>(steps[touch.step].node), touch.write ? "writes" : "reads",
                static_cast<unsigned long long>(touch.range.begin), static_cast<unsigned long long>(touch.range.end),
                touch.range.space, static_cast<int>(touch.range.content));
}

// Every pair between two barriers.
std::string find_race(std::span<const Step> steps, const std::vector<Touch>& touches) {
  std::vector<size_t> epoch;
  for (size_t s = 0, count = 0; s < steps.size(); ++s) epoch.push_back(count += steps[s].barrier);
  for (size_t b = 0; b < touches.size(); ++b) {
    if (steps[touches[b].step].kind == StepKind::host) continue;
    for (size_t a = b; a-- > 0 && epoch[touches[a].step] == epoch[touches[b].step];) {
      const Range &x = touches[a].range, &y = touches[b].range;
      if (touches[a].step == touches[b].step || steps[touches[a].step].kind == StepKind::host) continue;
      if (x.space != y.space || !(touches[a].write || touches[b].write)) continue;
      if (is_atomic(steps, touches[a]) && is_atomic(steps, touches[b])) continue;
      if (std::max(x.begin, y.begin) < std::min(x.end, y.end))
        return text(steps, touches[a]) + " and " + text(steps, touches[b]) + " without a barrier";
    }
  }
  return "";
}

// For every read, who wrote its bytes last.
std::string find_overwritten(std::span<const Step> steps, const std::vector<Touch>& touches) {
  for (size_t r = 0; r < touches.size(); ++r) {
    const Range& read = touches[r].range;
    if (touches[r].write || read.space == kFixed || read.space == kStatus || read.begin == read.end) continue;
    bool written = false;
    // A step's own writes come after its reads, so those of the same step do not count.
    for (size_t w = r; w-- > 0 && !written;) {
      const Range& write = touches[w].range;
      if (!touches[w].write || touches[w].step == touches[r].step || write.space != read.space) continue;
      if (std::max(write.begin, read.begin) >= std::min(write.end, read.end)) continue;
      if (write.content != read.content) return text(steps, touches[r]) + " after " + text(steps, touches[w]);
      written = write.begin <= read.begin && read.end <= write.end;
    }
    const bool is_state = read.space >= kFirstState && read.space < kFirstImage;
    if (!written && !is_state) return text(steps, touches[r]) + ", which nobody wrote";
  }
  return "";
}

}  // namespace

std::string find_hazard(std::span<const Step> steps) {
  std::vector<Touch> touches;
  for (size_t s = 0; s < steps.size(); ++s) {
    for (const Range& range : steps[s].reads) touches.push_back({s, range, false});
    for (const Range& range : steps[s].writes) touches.push_back({s, range, true});
  }
  const std::string race = find_race(steps, touches);
  return race.empty() ? find_overwritten(steps, touches) : race;
}

}  // namespace pumice::engine
