// SPDX-License-Identifier: Apache-2.0
// The launch of a linear of floats, by any of its kernels.
#pragma once

#include <vector>

#include "ops/linear/epilogue.h"
#include "ops/linear/kernels.h"

namespace pumice::engine {

// Columns of a row of x as kernels see it: those of the weight, or padded with zeros to whole tiles.
uint32_t x_columns(const PackedWeight& weight, const Epilogue& epilogue);

// What a kernel for floats reads, in the order of its bindings.
std::vector<Tensor> linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& epilogue);
// The same, and what its layer norms read. Its writes are out and moments.
std::vector<Tensor> normed_linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& epilogue);
// Whether launch_linear makes one launch.
bool is_one_launch(const Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& weight,
                   uint32_t m, const Epilogue& epilogue);
// Dispatches over blocks of x's rows and of the weight's rows that fit a binding of the device; mostly one. `m`: rows
// of x, not 0.
void launch_linear(Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& weight, uint32_t m,
                   const Epilogue& epilogue);

}  // namespace pumice::engine
