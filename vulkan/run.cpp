// SPDX-License-Identifier: Apache-2.0
#include "vulkan/run.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "vulkan/command.h"
#include "vulkan/queue.h"

namespace pumice::engine {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;
constexpr uint64_t kSlice = 50'000'000;  // ns between two calls of Run::poll

uint64_t between(Clock::time_point from, Clock::time_point to) {
  return to <= from ? 0 : static_cast<uint64_t>(std::chrono::duration_cast<nanoseconds>(to - from).count());
}

class Runner {
 public:
  Runner(Queue& queue, Recording& recording, Run& run)
      : queue_(queue),
        recording_(recording),
        run_(run),
        timeout_(queue.timeout(run.timeout_ns)),
        several_parts_(recording.parts.size() > 1),
        times_a_submit_(std::clamp(run.times_a_submit, 1u, run.times)),
        submits_(several_parts_ ? uint64_t{run.times} * recording.parts.size()
                                : (run.times + times_a_submit_ - 1) / times_a_submit_) {
    run_.part_ns.assign(recording.parts.size(), ~uint64_t{0});
  }

  // Two submits are under way, so that the device need not wait for the host.
  void run() try {
    while (done_ < submits_) {
      for (; next_ < submits_ && next_ < done_ + 2; ++next_) submit();
      await();
      note();
      ++done_;
    }
  } catch (...) {
    drain();
    if (late_) refuse_late();
    throw;
  }

 private:
  Submit& slot(uint64_t submit) { return recording_.submits[submit % 2]; }
  uint32_t times_of(uint64_t submit) const {
    if (several_parts_) return 1;
    return static_cast<uint32_t>(std::min<uint64_t>(times_a_submit_, run_.times - submit * times_a_submit_));
  }

  void submit() {
    if (next_ > 0) must_go_on();
    commands_.clear();
    if (next_ == 0 && run_.first != nullptr) append(*run_.first);
    commands_.insert(commands_.end(), times_of(next_), recording_.parts[next_ % recording_.parts.size()]);
    if (next_ + 1 == submits_ && run_.last != nullptr) append(*run_.last);
    queue_.submit(slot(next_), commands_);
    submitted_[next_ % 2] = Clock::now();
    run_.began = true;
  }

  void append(const Commands& once) {
    const std::vector<VkCommandBuffer>& parts = once.recorded().parts;
    commands_.insert(commands_.end(), parts.begin(), parts.end());
  }

  // Since the run began: also where a driver's wait gives up at once, again and again.
  uint64_t gone() const { return std::max(between(begin_, Clock::now()), waited_); }

  void must_go_on() {
    if (run_.poll) run_.poll();
    late_ = gone() >= timeout_;
    if (late_) refuse_late();
  }

  void await() {
    for (;;) {
      const uint64_t before = gone(), slice = std::min(kSlice, timeout_ - std::min(before, timeout_));
      if (queue_.came(slot(done_), slice)) return;
      waited_ = before + slice;
      must_go_on();
    }
  }

  void note() {
    const auto now = Clock::now();
    uint64_t& ns = run_.part_ns[done_ % run_.part_ns.size()];
    ns = std::min(ns, between(std::max(submitted_[done_ % 2], last_), now) / times_of(done_));
    last_ = now;
  }

  // What is under way is waited for: it uses memory that the caller may free.
  void drain() noexcept {
    const uint64_t end = std::max(between(begin_, Clock::now()), timeout_) + queue_.core().last_wait_ns();
    for (; done_ < next_; ++done_) {
      Submit& submit = slot(done_);
      try {
        const uint64_t gone = between(begin_, Clock::now());
        if (queue_.came(submit, end - std::min(gone, end))) continue;
      } catch (const std::exception&) {  // the error that led here is the one to tell
        if (!submit.pending) continue;
      }
      queue_.give_up(submit);
    }
  }

  [[noreturn]] void refuse_late() const {
    fail(Code::Timeout, Stage::execute, "commands", "%s did not finish within %llu ms%s",
         queue_.core().vk.device.c_str(), static_cast<unsigned long long>(timeout_ / 1'000'000),
         queue_.core().lost ? " (vkWaitForFences: VK_TIMEOUT); it counts as lost" : "; it can go on with other runs");
  }

  Queue& queue_;
  Recording& recording_;
  Run& run_;
  const uint64_t timeout_;
  const bool several_parts_;
  const uint32_t times_a_submit_;
  const uint64_t submits_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point submitted_[2] = {begin_, begin_}, last_ = begin_;
  uint64_t next_ = 0, done_ = 0;  // submits
  uint64_t waited_ = 0;           // ns, by what waits were asked for
  bool late_ = false;
  std::vector<VkCommandBuffer> commands_;
};

}  // namespace

void run(Queue& queue, Recording& recording, Run& run) {
  Runner(queue, recording, run).run();
}

}  // namespace pumice::engine
