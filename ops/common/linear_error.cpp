// SPDX-License-Identifier: Apache-2.0
#include "ops/common/linear_kernel.h"

namespace pumice {

// A product, a sum and the scales are fp32: a rounding for each of the k sums, and at most 26 for the zero point, the
// scale, partial sums that meet, bias, activation and residual (linear_gemv.glsl, linear_tiled.glsl count them).
double linear_error(const LinearKernel&, const LinearShape& shape) {
  return 0x1p-24 * (static_cast<double>(shape.k) + 26);
}

}  // namespace pumice
