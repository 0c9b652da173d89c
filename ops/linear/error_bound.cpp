// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/error_bound.h"

namespace pumice::engine {

// Without matrices a product, a sum and the scales are fp32: a rounding for each of the k sums, and at most 26 for the
// zero point, the scale, partial sums that meet, bias, activation and residual (linear_gemv*.glsl, linear_tiled.glsl
// count them). Matrix units sum in fp32, but may cut off where others round: 2^-23. Tiles of matrices take weights that
// were rounded to fp16 after the product with the scale of their group (linear/matrix.glslh).
//
// Split x: of each element what two fp16 of 11 bits leave, and in sums of groups one rounding each. Split weights: also
// what their two leave, and the product of the low parts (linear/matrix.glslh).
double linear_error(const LinearKernel& kernel, const LinearShape& shape) {
  // Kernels of integers: whole numbers come to fp32 for each group of 8 columns or more, and partial sums of as many
  // lanes meet; sums of rows with one scale are exact. Scales of groups and rows, bias, activation and residual round.
  if (kernel.input == Input::split)
    return 0x1p-23 * (static_cast<double>(shape.k) + 26) + (shape.weight == WeightType::f32 ? 0x1p-19 : 0x1p-22);
  if (kernel.input != Input::floats) return 0x1p-24 * ((shape.group == 0 ? 0 : static_cast<double>(shape.k) / 4) + 16);
  // The scale of a quantized row rounds, too.
  const double steps = static_cast<double>(shape.k) + 26 + (shape.integers ? 2 : 0);
  const bool plain = kernel.family == Family::gemv || kernel.family == Family::gemv_rows;
  if (plain || kernel.family == Family::tiled) return 0x1p-24 * steps;
  const bool rounded = kernel.family != Family::gemv_fragments && shape.group != 0;
  return 0x1p-23 * steps + (rounded ? 0x1p-11 : 0);
}

double split_error(const LinearKernel& kernel, const LinearShape& shape) {
  if (kernel.input != Input::split) return 0;
  return shape.weight == WeightType::f32 ? 0x1p-49 : 0x1p-50;
}

}  // namespace pumice::engine
