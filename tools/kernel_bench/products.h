// SPDX-License-Identifier: Apache-2.0
// The matrix products of a model whose kernel can be tuned.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/kernel_bench/case.h"
#include "tools/kernel_bench/kernel_bench.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// A product at a number of rows, and how often selection asked for it, which grows with the calls that have it.
struct Product {
  Case c;
  uint64_t asked = 1;
  double work() const;  // of all of them, in bytes: by which the heaviest comes first
};

// Those of all methods of the file `options.model`, at the sizes of `options.sizes`; sizes by name that these leave out
// are those of the export, and 1, 4, 16, 64, 256 and 1024 as far as the file allows. The heaviest first.
std::vector<Product> products_of(const Device& device, const Options& options);
std::vector<Product> heaviest_first(std::vector<Product> products);

}  // namespace pumice::engine::kernel_bench
