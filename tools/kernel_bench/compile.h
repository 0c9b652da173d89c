// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

uint32_t run_compile(const Options& options, const Report& report);

}  // namespace pumice::engine::kernel_bench
