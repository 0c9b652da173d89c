// SPDX-License-Identifier: Apache-2.0
// `tune`: measures which kernel is the fastest for the products of a model on this device, and keeps that in the cache.
#pragma once

#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

void run_tune(const Options& options, const Report& report);

}  // namespace pumice::engine::kernel_bench
