// SPDX-License-Identifier: Apache-2.0
// The launch of a linear by kernels that multiply 8-bit integers.
#pragma once

#include <vector>

#include "ops/linear/int8_node.h"

namespace pumice::engine {

// What a kernel that multiplies integers reads, and its launch. `x`: in the form of `input`, with its
// `rows` where that is words; `sums`: of weight rows with one scale.
std::vector<Tensor> integer_reads(const IntegerProduct& product, Input input, Tensor x, Tensor rows, Tensor sums);
void launch_integers(Launch& launch, const LinearKernel& kernel, const IntegerProduct& product, uint32_t m);
// Sums of the integers of each row of a packed weight, made at load; empty where rows have more than one scale.
Tensor weight_sums(Graph& graph, const PackedWeight& weight);

}  // namespace pumice::engine
