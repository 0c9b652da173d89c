// SPDX-License-Identifier: Apache-2.0
// The case table: what tests and benchmarks run when no case is named.
#pragma once

#include "tools/kernel_bench/case.h"
#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

enum class Purpose : uint8_t { test, bench };

// The cases that the options ask for: those named, else the table's of every operator asked for. `cpu`: the benchmark's
// short list for CPU drivers.
std::vector<Case> choose(const Options& options, Purpose purpose, bool cpu);

}  // namespace pumice::engine::kernel_bench
