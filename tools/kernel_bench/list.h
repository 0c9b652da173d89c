// SPDX-License-Identifier: Apache-2.0
// `kernel list`.
#pragma once

#include <string>

#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

std::string run_list(const Options& options);

}  // namespace pumice::engine::kernel_bench
