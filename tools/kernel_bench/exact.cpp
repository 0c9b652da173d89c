// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/exact.h"

#include <cmath>

#include "glsl/include/math/activation.glslh"

namespace pumice::engine::kernel_bench {
namespace {

double clamped(double y) {  // to 0..6; NaN stays NaN
  return y < 0 ? 0 : y > 6 ? 6 : y;
}

double activate(double y, uint32_t act) {
  switch (act) {
    case ACT_RELU:
      return y > 0 || std::isnan(y) ? y : 0;
    case ACT_GELU:
      return 0.5 * y * (1 + std::erf(y * std::sqrt(0.5)));
    case ACT_GELU_TANH:
      return 0.5 * y * (1 + std::tanh(std::sqrt(2 / M_PI) * (y + 0.044715 * y * y * y)));
    case ACT_SILU:
      return y / (1 + std::exp(-y));
    case ACT_RELU6:
      return clamped(y);
    case ACT_HARDSWISH:
      return y * clamped(y + 3) / 6;
    case ACT_HARDSIGMOID:
      return clamped(y + 3) / 6;
    default:
      return y;
  }
}

// The largest slope of an activation function, to two digits.
double slope(uint32_t act) {
  return act == ACT_HARDSWISH ? 1.5 : act == ACT_GELU || act == ACT_GELU_TANH || act == ACT_SILU ? 1.13 : 1;
}

}  // namespace

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
  e.size *= slope(act);
  e.want = activate(e.want, act);
  return e;
}

}  // namespace pumice::engine::kernel_bench
