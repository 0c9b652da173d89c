// SPDX-License-Identifier: Apache-2.0
// Linear layers of 8-bit integers: x is quantized on its way, or is integers already.
//
// The exact sum of (qx - zx) * (qw - zw) over a group is scaled by that of the group, and the sum over the groups by
// the row's: only these scalings and additions round. Kernels for floats compute it from whole numbers, too.
#pragma once

#include "ops/common/blocks.h"
#include "ops/common/gemm.h"

namespace pumice {

// Where the integers of x, and the scale and zero point of each row, come from.
struct RowSource {
  Tensor x;                        // f32, f16: quantized; i8, u8: integers
  uint32_t source = 0;             // ROWS_* of glsl/include/modes.glslh
  uint32_t mapping = 0;            // of chosen parameters: one of torchao's MappingType, QPARAMS_*
  float eps = 0;                   // the least scale, likewise
  int64_t low = -128, high = 127;  // of integers made here: within -128..127 or 0..255
  double scale = 1;                // numbers
  int64_t zero = 0;
  Parameter scales, zeros;  // tensors, an element for each row or one
};

// How the result becomes integers again, rounded as eager PyTorch rounds; an empty `scales`: numbers for all.
struct Requantize {
  double scale = 1;
  int64_t zero = 0, low = -128, high = 127;
  Parameter scales, zeros;  // an element for each row
};

// Adds the nodes. The epilogue's tensors have x's dtype where that is a float type and f32 elsewhere, and so has the
// output unless it is quantized again (i8, u8).
void linear_int8(Graph& graph, const char* op, Tensor out, const RowSource& rows, const PackedWeight& weight,
                 const Epilogue& end, const Requantize* again = nullptr);

// The integers low..high of arguments, which 8 bits hold.
void check_range(int64_t low, int64_t high, const char* op);

}  // namespace pumice
