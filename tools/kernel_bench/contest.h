// SPDX-License-Identifier: Apache-2.0
// Which kernel of a case is the fastest? They are timed in turns, round after round, so that clocks that move and other
// programs disturb all of them alike.
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/kernel_bench.h"
#include "tools/kernel_bench/stats.h"

namespace pumice::engine::kernel_bench {

// A kernel whose short time is so many times that of the best is a contender, and at most so many are.
inline constexpr double kContender = 1.3;
inline constexpr size_t kMostContenders = 6;

// A kernel and its graph in `Loaded`; contest() fills in its times in microseconds, on CPU drivers of the processor.
struct Contender {
  std::string kernel;
  const Graph* graph;
  Spread us = {};
};

// Makes the pipelines of all kernels at once, on several processors: one kernel after the other, a GPU's driver takes
// longer to compile them than it takes to time them.
void prepare_pipelines(const Loaded& loaded);
// How many copies of everything a harness has, so that together they are larger than a cache.
uint32_t slots(uint64_t slot_bytes, const Options& options, bool cpu);
// A short time of one kernel. Infinite where its first replay takes longer than `most_us`.
double short_us(const Loaded& loaded, const Graph& graph, Transfers& transfers, std::span<const Data> inputs,
                const Options& options, double most_us);
// Of times, those up to `most`: where they are, the least first.
std::vector<size_t> shortest(const std::vector<double>& times, double most = INFINITY);
// Times the contenders, for about `seconds` each and five rounds at least.
void contest(const Loaded& loaded, Transfers& transfers, std::span<Contender> contenders, std::span<const Data> inputs,
             const Options& options, double seconds);
// The fastest of them by the median; and whether it is so by more than the spread of both times, or is the same.
const Contender& fastest(std::span<const Contender> contenders);
bool is_faster(const Contender& a, const Contender& b);

}  // namespace pumice::engine::kernel_bench
