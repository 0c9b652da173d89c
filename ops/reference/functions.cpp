// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/functions.h"

#include <algorithm>
#include <cmath>

namespace pumice::engine::reference {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
}
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
  return x * sigmoid(x);
}
double reciprocal(double x) {
  return 1 / x;
}
double rsqrt(double x) {
  return 1 / std::sqrt(x);
}
double hardsigmoid(double x) {
  return std::isnan(x) ? x : std::clamp(x + 3, 0.0, 6.0) / 6;
}
double hardswish(double x) {
  return x * hardsigmoid(x);
}
double relu(double x) {
  return x > 0 || std::isnan(x) ? x : 0;
}
double neg(double x) {
  return -x;
}
double square(double x) {
  return x * x;
}

}  // namespace pumice::engine::reference
