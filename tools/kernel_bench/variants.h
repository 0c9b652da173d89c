// SPDX-License-Identifier: Apache-2.0
// Which cases launch a shader variant, for tests that must run each of them.
#pragma once

#include <string>
#include <vector>

#include "tools/kernel_bench/case.h"
#include "tools/kernel_bench/kernel_bench.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

struct Launching {
  Case c;
  std::string kernel;
};
struct Found {
  std::vector<Launching> pairs;      // which together launch all variants but
  std::vector<std::string> nowhere;  // those that no small case of the table launches, with any kernel and storage
};

// Of options.variants, on a device with these features: small cases first. Throws InvalidArgument for a name that no
// variant has.
Found launching(const Options& options, const Features& features);

}  // namespace pumice::engine::kernel_bench
