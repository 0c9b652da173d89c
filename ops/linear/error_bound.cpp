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
SumRoundings linear_roundings(const LinearKernel& kernel, const LinearShape& shape) {
  // Kernels of integers: whole numbers come to fp32 for each group of 8 columns or more, and partial sums of as many
  // lanes meet; sums of rows with one scale are exact. Scales of groups and rows, bias, activation and residual round.
  if (kernel.input == Input::split || kernel.input == Input::splits) {
    const double of_terms = shape.weight == WeightType::f32 ? 0x1p-19 : 0x1p-22;
    const double fixed = kernel.input == Input::splits ? 27 : 26;
    return {.fixed = fixed, .unit = 0x1p-23, .of_terms = of_terms, .cuts = true};
  }
  if (kernel.input != Input::floats) return {.per_term = shape.group == 0 ? 0 : 0.25, .fixed = 16};
  // The scale of a quantized row rounds, too.
  const double fixed = 26 + (shape.integers ? 2 : 0);
  const bool plain = kernel.family == Family::gemv || kernel.family == Family::gemv_rows;
  if (plain || kernel.family == Family::tiled) return {.fixed = fixed};
  const bool passes = kernel.family == Family::gemv_fragments || kernel.family == Family::gemv_row;
  const bool rounded = !passes && shape.group != 0;
  return {.fixed = fixed, .unit = 0x1p-23, .of_terms = rounded ? 0x1p-11 : 0, .cuts = true};
}

double linear_error(const LinearKernel& kernel, const LinearShape& shape) {
  return linear_roundings(kernel, shape).worst(static_cast<double>(shape.k));
}

double split_error(const LinearKernel& kernel, const LinearShape& shape) {
  if (kernel.input != Input::split && kernel.input != Input::splits) return 0;
  return shape.weight == WeightType::f32 ? 0x1p-49 : 0x1p-50;
}

}  // namespace pumice::engine
