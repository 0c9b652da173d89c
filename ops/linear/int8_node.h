// SPDX-License-Identifier: Apache-2.0
// Linear layers of 8-bit integers: x is quantized first, or is integers already.
//
// The exact sum of (qx - zx) * (qw - zw) over a group is multiplied by the scale of the group, and the sum over the
// groups by the scale of the row: only these products and sums round. Kernels for floats can compute it, too, from
// whole numbers.
#pragma once

#include "ops/linear/epilogue.h"
#include "ops/linear/row_source.h"
#include "ops/quant/requantize.h"

namespace pumice::engine {

struct IntegerProduct {
  const char* op;
  RowSource rows;
  PackedWeight weight;
  Epilogue epilogue;      // tensors of rows.real_dtype()
  Requantize requantize;  // only where `out` is i8 or u8; else it is rows.real_dtype()
  Tensor out;
  uint32_t stride = 0;    // columns from a row of `out` to the next, linear_int8() sets it
  bool textures = false;  // x, the residual and out are
  bool bytes() const { return out.dtype() == DType::i8 || out.dtype() == DType::u8; }
  LinearShape shape(int64_t m) const;
};

// Adds the nodes: one for each form in which kernels read x (Input). At each launch only the node of the kernel for the
// live shape runs. Where x, the residual or the output is a texture, all of them are: x is quantized from its texture,
// whole numbers as floats stay in textures; kernels of integers read words and write a buffer, which is copied.
void linear_int8(Graph& graph, IntegerProduct product);

// Throws unless low..high is a range within -128..127 or 0..255.
void check_range(int64_t low, int64_t high, const char* op);

}  // namespace pumice::engine
