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

Timing time(const std::shared_ptr<Device>& device, const std::function<void(Commands&, uint32_t)>& dispatch,
            const TimerOptions& options) {
  // A submit takes 5 ms, so that the cost of the two timestamps is less than a thousandth of it. It takes longer where
  // all slots must be visited, unless a replay is so slow that caches do not matter.
  constexpr double kSubmitUs = 5000, kMostUs = 250'000;
  constexpr uint32_t kMostReplays = 4096;
  Commands commands(device);
  const auto record = [&](uint32_t replays) {
    commands.begin(2);
    commands.timestamp(0);
    for (uint32_t i = 0; i < replays; ++i) {
      if (i > 0 && options.barrier) commands.barrier();
      dispatch(commands, i);
    }
    commands.timestamp(1);
    commands.end();
  };
  record(1);
  device->run(commands);  // creates the pipelines
  device->run(commands);
  const double first_us = std::max(commands.timestamps_us()[1], 0.1);
  const auto in = [&](double us, double each) {
    return static_cast<uint32_t>(std::min<double>(us / each, kMostReplays));
  };
  uint32_t replays = std::max({std::min(options.least_replays, in(kMostUs, first_us)), in(kSubmitUs, first_us), 1u});
  record(replays);
  const auto warm = Clock::now();
  do device->run(commands);
  while (since(warm) < options.warm_seconds);
  // When clocks are up, a replay may take much less time than before.
  const double each_us = std::max(commands.timestamps_us()[1] / replays, 0.1);
  if (replays < in(kSubmitUs, each_us)) {
    replays = in(kSubmitUs, each_us);
    record(replays);
    device->run(commands);
  }
  std::vector<double> samples;
  const auto begin = Clock::now();
  const double cpu = processor_us();
  while (samples.size() < 5 || (since(begin) < options.seconds && samples.size() < 1000)) {
    device->run(commands);
    samples.push_back(commands.timestamps_us()[1] / replays);
  }
  const double per_replay = (processor_us() - cpu) / static_cast<double>(samples.size()) / replays;
  return {spread(samples), per_replay, replays, samples.size()};
}

}  // namespace pumice::engine::kernel_bench
