// SPDX-License-Identifier: Apache-2.0
// The table of cases: those that tests and benchmarks run when the options name none.
#pragma once

#include "tools/kernel_bench/case.h"
#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

enum class Purpose : uint8_t { test, bench, compile };

// The cases in the options, else the table's cases of the operators in the options. `cpu`: benchmarks use the short
// list for CPU drivers.
std::vector<Case> choose(const Options& options, Purpose purpose, bool cpu);

}  // namespace pumice::engine::kernel_bench
