// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/timer.h"

#include <sys/resource.h>

#include <chrono>

namespace pumice::engine::kernel_bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double processor_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return 1e6 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec); };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

}  // namespace

Replays::Replays(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
                 const TimerOptions& options)
    : device_(device), commands_(device) {
  // A submit takes 5 ms, so that the cost of the two timestamps is less than a thousandth of it. It takes longer where
  // all slots must be visited, unless a replay is so slow that caches do not matter.
  constexpr double kSubmitUs = 5000, kMostUs = 250'000;
  constexpr uint32_t kMostReplays = 4096;
  const auto record = [&](uint32_t replays) {
    commands_.begin(2);
    commands_.timestamp(0);
    for (uint32_t i = 0; i < replays; ++i) {
      if (i > 0 && options.barrier) commands_.barrier();
      dispatch(commands_, i);
    }
    commands_.timestamp(1);
    commands_.end();
  };
  record(1);
  device->run(commands_);  // creates the pipelines
  device->run(commands_);
  const double first_us = std::max(commands_.timestamps_us()[1], 0.1);
  if (first_us > options.most_us) return;
  const auto in = [&](double us, double each) {
    return static_cast<uint32_t>(std::min<double>(us / each, kMostReplays));
  };
  count_ = std::max({std::min(options.least_replays, in(kMostUs, first_us)), in(kSubmitUs, first_us), 1u});
  record(count_);
  const auto warm = Clock::now();
  do device->run(commands_);
  while (since(warm) < options.warm_seconds);
  // When clocks are up, a replay may take much less time than before.
  const double each_us = std::max(commands_.timestamps_us()[1] / count_, 0.1);
  if (count_ < in(kSubmitUs, each_us)) {
    count_ = in(kSubmitUs, each_us);
    record(count_);
    device->run(commands_);
  }
}

Replays::Sample Replays::submit() {
  const double cpu = processor_us();
  device_->run(commands_);
  return {commands_.timestamps_us()[1] / count_, (processor_us() - cpu) / count_};
}

Timing time(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
            const TimerOptions& options) {
  Replays replays(device, dispatch, options);
  std::vector<double> samples, cpu_samples;
  const auto begin = Clock::now();
  while (samples.size() < 5 || (since(begin) < options.seconds && samples.size() < 1000)) {
    const Replays::Sample sample = replays.submit();
    samples.push_back(sample.us);
    cpu_samples.push_back(sample.cpu_us);
  }
  return {spread(samples), spread(cpu_samples), replays.count(), samples.size()};
}

}  // namespace pumice::engine::kernel_bench
