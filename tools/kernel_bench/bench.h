// SPDX-License-Identifier: Apache-2.0
// `kernel bench`.
#pragma once

#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

uint32_t run_bench(const Options& options, const Report& report);

}  // namespace pumice::engine::kernel_bench
