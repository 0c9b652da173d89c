// SPDX-License-Identifier: Apache-2.0
// matmul by cooperative matrices: glsl/matmul_rows.glsl, where an operand needs it, and glsl/matmul_matrix.glsl.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "graph/graph.h"
#include "ops/linear/kernels.h"

namespace pumice::engine {

// Where a product finds the rows of an operand (of b: its columns), in elements.
struct MatrixOperand {
  int64_t rows = 0, row_stride = 0, k_stride = 0;
  std::array<int64_t, 4> batch_stride = {};  // 0: every batch has the same
};

struct MatrixProduct {
  MatrixOperand a, b;
  int64_t k = 0;
  std::array<int64_t, 4> size = {1, 1, 1, 1};  // of the batch dimensions
  DType dtype = DType::f32;
  int64_t batches() const { return size[0] * size[1] * size[2] * size[3]; }
};

// Whether a device may multiply such operands so at some size.
bool has_matmul_matrices(DType dtype, const Features& features);
// The kernel whose tiles glsl/matmul_matrix.glsl takes; null where glsl/matmul.glsl is as fast or there is none.
const LinearKernel* pick_matmul_matrices(const MatrixProduct& product, const Features& features);

// Whether copies of the operands fit bindings.
bool fits_bindings(const MatrixProduct& product, const Features& features);
// Whether it can be read where it is, once in fp16: k has stride 1, the others are multiples of 8.
bool is_read_directly(const MatrixOperand& operand);

// Of a live launch: what is multiplied, and by which tiles; empty where glsl/matmul.glsl does it.
struct PickedProduct {
  MatrixProduct product;
  const LinearKernel* kernel;
};
using PickProduct = std::function<std::optional<PickedProduct>(const Launch&)>;

struct MatrixEpilogue {
  Tensor bias;
  uint32_t act;
};

// Dispatches that run where `pick` gives a product. `out` has its shape then. `direct`: a, b are fp16 and read where
// they are (is_read_directly); the others are copied first.
void matmul_by_matrices(Graph& graph, Tensor out, std::array<Tensor, 2> operands, std::array<bool, 2> direct,
                        const MatrixEpilogue& epilogue, const PickProduct& pick);

}  // namespace pumice::engine
