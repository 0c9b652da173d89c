// SPDX-License-Identifier: Apache-2.0
// Products with the weights of experts that were chosen for each row: glsl/include/linear/experts.glslh.
#pragma once

#include <memory>

#include "ops/linear/epilogue.h"
#include "ops/linear/kernels.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

// The weights of all experts, one below the other, and what every row of out is made of.
struct Experts {
  PackedWeight weight;  // of one expert, but its tensors are those of all
  uint32_t count = 0;   // of experts
  Tensor x;             // [T, K], or [T, A, K]: a row for each expert chosen
  Tensor chosen;        // [T, A]: experts
  Epilogue epilogue = {};

  uint32_t rows() const { return u32(chosen.numel()); }                            // of out
  uint32_t share() const { return x.rank() == 2 ? u32(chosen.dim(1)) : 1; }        // of out made from one row of x
  bool listed() const { return chosen.dim(0) > 1 && chosen.numel() > count / 2; }  // whether experts have row blocks
};

// The kernel for an expert's rows: that for one row, or for row blocks.
const LinearKernel& expert_kernel(const Experts& experts, const Features& features);

// Rows of a block where there are no matrices.
uint32_t most_listed_rows(DType dtype, const Features& features);

// Row blocks of the experts (glsl/expert_rows.glsl), made once for all products with the same choice; empty where no
// product needs them.
struct ExpertRows {
  Tensor list;
};
std::shared_ptr<ExpertRows> expert_rows(Graph& graph, const Experts& experts);

// Adds the node that writes out [T * A, N], or half as many columns where it is gated, at sizes where
// experts.listed() == list.
void expert_product(Graph& graph, Tensor out, const Experts& experts, bool list);

}  // namespace pumice::engine
