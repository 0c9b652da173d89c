// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/exact.h"

#include <cmath>

#include "glsl/include/math/activation.glslh"
#include "ops/reference/products.h"

namespace pumice::engine::kernel_bench {

// Four independent sums, so that the compiler uses vector instructions.
Expected dot(const double* a, const double* b, size_t count) {
  double sums[4] = {}, sizes[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) {
      const double product = a[i + j] * b[i + j];
      sums[j] += product;
      sizes[j] += std::fabs(product);
    }
  }
  for (; i < count; ++i) {
    sums[0] += a[i] * b[i];
    sizes[0] += std::fabs(a[i] * b[i]);
  }
  return {.want = (sums[0] + sums[1]) + (sums[2] + sums[3]), .size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3])};
}

Expected finished(Expected e, double bias, uint32_t act) {
  e.want += bias;
  e.size += std::fabs(bias);
  e.slack = act >= ACT_GELU ? 4e-7 * std::fabs(e.want) : 0;
  e.size *= reference::slope(act);
  e.reach *= reference::slope(act);
  e.want = reference::activated(e.want, act);
  return e;
}

}  // namespace pumice::engine::kernel_bench
