// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/contest.h"

#include <algorithm>
#include <chrono>

#include "tools/kernel_bench/compile_times.h"
#include "tools/kernel_bench/timer.h"

namespace pumice::engine::kernel_bench {
namespace {

// Bytes of all copies. GPUs: more than four times the largest known cache (60 MB of an H200). CPU drivers: more than
// the caches of a core.
constexpr uint64_t kRotateGpu = uint64_t{256} << 20, kRotateCpu = uint64_t{64} << 20;
constexpr uint64_t kMostSlots = 4096;

// A kernel's memory and its recorded replays.
struct Entrant {
  Harness harness;
  Replays replays;
  std::vector<double> us = {};

  Entrant(const Loaded& loaded, const Graph& graph, Transfers& transfers, std::span<const Data> inputs, uint32_t slots,
          bool barrier, double most_us)
      : harness(loaded, graph, transfers, {.slots = slots}),
        replays(loaded.device,
                (harness.reset(0, inputs),
                 [this, slots](Commands& commands, uint32_t i) { harness.dispatch(commands, i % slots); }),
                {.warm_seconds = 0.01, .seconds = 0, .least_replays = slots, .barrier = barrier, .most_us = most_us}) {}
};

bool is_cpu(const Loaded& loaded) {
  return loaded.device->info().kind == "cpu";
}

uint32_t slots_of(const Loaded& loaded, const Graph& graph, Transfers& transfers, const Options& options) {
  return slots(Harness(loaded, graph, transfers, {}).slot_bytes(), options, is_cpu(loaded));
}

void take(Entrant& entrant, bool cpu) {
  const Replays::Sample sample = entrant.replays.submit();
  entrant.us.push_back(cpu ? sample.cpu_us : sample.us);
}

}  // namespace

void prepare_pipelines(const Loaded& loaded) {
  std::vector<PipelineKey> keys;
  for (const auto& graph : loaded.graphs)
    for (PipelineKey& key : pipeline_keys(*graph)) keys.push_back(std::move(key));
  loaded.device->pipelines().prepare(keys);
}

uint32_t slots(uint64_t slot_bytes, const Options& options, bool cpu) {
  const uint64_t rotate = options.rotate_bytes != 0 ? options.rotate_bytes : cpu ? kRotateCpu : kRotateGpu;
  return static_cast<uint32_t>(std::min(kMostSlots, std::max<uint64_t>(1, (rotate + slot_bytes - 1) / slot_bytes)));
}

double short_us(const Loaded& loaded, const Graph& graph, Transfers& transfers, std::span<const Data> inputs,
                const Options& options, double most_us) {
  const uint32_t slots = slots_of(loaded, graph, transfers, options);
  Entrant entrant(loaded, graph, transfers, inputs, slots, options.barrier, most_us);
  if (entrant.replays.count() == 0) return INFINITY;
  for (int i = 0; i < 3; ++i) take(entrant, is_cpu(loaded));
  return percentile(entrant.us, 0.5);
}

std::vector<size_t> shortest(const std::vector<double>& times, double most) {
  std::vector<size_t> order;
  for (size_t i = 0; i < times.size(); ++i)
    if (times[i] <= most) order.push_back(i);
  std::ranges::sort(order, {}, [&](size_t i) { return times[i]; });
  return order;
}

void contest(const Loaded& loaded, Transfers& transfers, std::span<Contender> contenders, std::span<const Data> inputs,
             const Options& options, double seconds) {
  std::vector<std::unique_ptr<Entrant>> entrants;
  for (const Contender& each : contenders) {
    const uint32_t slots = slots_of(loaded, *each.graph, transfers, options);
    entrants.push_back(
        std::make_unique<Entrant>(loaded, *each.graph, transfers, inputs, slots, options.barrier, INFINITY));
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds * static_cast<double>(entrants.size()));
  constexpr int kLeastRounds = 5, kMostRounds = 100;
  for (int round = 0; round < kLeastRounds || (round < kMostRounds && Clock::now() < end); ++round)
    for (const auto& entrant : entrants) take(*entrant, is_cpu(loaded));
  for (size_t i = 0; i < contenders.size(); ++i) contenders[i].us = spread(entrants[i]->us);
}

const Contender& fastest(std::span<const Contender> contenders) {
  return *std::ranges::min_element(contenders, {}, [](const Contender& each) { return each.us.median; });
}

bool is_faster(const Contender& a, const Contender& b) {
  return a.us.median + std::max(a.us.p90 - a.us.p10, b.us.p90 - b.us.p10) / 2 < b.us.median;
}

}  // namespace pumice::engine::kernel_bench
