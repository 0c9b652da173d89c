// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/elementwise_chain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "glsl/elementwise_chain.h"
#include "glsl/include/core/modes.glslh"
#include "ops/reference/functions.h"
#include "ops/reference/pointwise.h"

namespace pumice::engine::reference {
namespace {

using glsl::elementwise_chain::FUNCTION;

constexpr auto kFirstOfTwo = static_cast<uint32_t>(FUNCTION::add);
constexpr auto kFirstComparison = static_cast<uint32_t>(FUNCTION::eq);
double (*const kOfOne[])(double) = {gelu,        gelu_tanh,  std::tanh, sigmoid,   silu,       std::exp, std::expm1,
                                    std::log,    std::log1p, std::sqrt, rsqrt,     reciprocal, std::erf, hardswish,
                                    hardsigmoid, relu,       neg,       std::fabs, square};
static_assert(std::size(kOfOne) == kFirstOfTwo);
constexpr uint32_t kOfTwo[] = {BINARY_ADD,     BINARY_SUB, BINARY_MUL,   BINARY_DIV, BINARY_MAXIMUM,
                               BINARY_MINIMUM, BINARY_POW, BINARY_PRELU, BINARY_ELU, BINARY_ADD_RELU};
static_assert(kFirstOfTwo + std::size(kOfTwo) == static_cast<uint32_t>(FUNCTION::clamp));

struct Step {
  uint32_t function;
  std::array<size_t, 3> at;
};
using Values = std::array<double, CHAIN_NUMBER + CHAIN_NUMBERS>;

bool is_of_two(const Step& step) {
  return step.function >= kFirstOfTwo && step.function < static_cast<uint32_t>(FUNCTION::clamp);
}

double result(const Step& step, const Values& values) {
  const double a = values[step.at[0]], b = values[step.at[1]], c = values[step.at[2]];
  if (step.function < kFirstOfTwo) return kOfOne[step.function](a);
  if (is_of_two(step)) return of_floats(kOfTwo[step.function - kFirstOfTwo], a, b);
  if (step.function == static_cast<uint32_t>(FUNCTION::clamp)) return std::isnan(a) ? a : std::min(std::max(a, b), c);
  if (step.function == static_cast<uint32_t>(FUNCTION::where)) return a != 0 ? b : c;
  return compare(COMPARE_EQ + step.function - kFirstComparison, a, b);
}

// Beside the rounding of the result, `y`.
double error(const Step& step, const Values& values, double y) {
  const bool is_exact = step.function == static_cast<uint32_t>(FUNCTION::relu) ||
                        step.function == static_cast<uint32_t>(FUNCTION::neg) ||
                        step.function == static_cast<uint32_t>(FUNCTION::abs);
  if (!std::isfinite(y) || is_exact || step.function >= static_cast<uint32_t>(FUNCTION::clamp)) return 0;
  if (!is_of_two(step)) return 0x1p-18 * std::fabs(y) + 0x1p-20;
  return error_of_floats(kOfTwo[step.function - kFirstOfTwo], values[step.at[0]], values[step.at[1]], y);
}

// The last result of the steps behind `first`, in fp64.
double rest(const std::vector<Step>& steps, Values values, size_t first, double moved) {
  values[first] = moved;
  for (size_t k = first + 1; k < steps.size(); ++k) values[k] = result(steps[k], values);
  return values[steps.size() - 1];
}

void push(HostOutput& out, const std::vector<Step>& steps, Values& values) {
  const bool is_half = out.dtype == DType::f16;
  double total = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    values[k] = result(steps[k], values);
    if (k + 1 < steps.size()) values[k] = stored(values[k], out.dtype);
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    double off = error(steps[k], values, values[k]);
    if (k + 1 == steps.size()) {
      out.push(values[k], off + total * 1.02);  // errors of errors
      return;
    }
    if (off == 0) continue;
    off += (is_half ? 0x1p-10 : 0x1p-23) * std::fabs(values[k]) + (is_half ? 0x1p-24 : 0);
    const double y = rest(steps, values, k, values[k]);
    const double moved = std::max(std::fabs(rest(steps, values, k, values[k] + off) - y),
                                  std::fabs(rest(steps, values, k, values[k] - off) - y));
    if (std::isfinite(moved)) total += moved;
  }
}

}  // namespace

void elementwise_chain(HostCall& call) {
  const std::vector<int64_t>& list = call.ints(2);
  std::vector<Step> steps;
  for (size_t k = 0; k + 3 < list.size(); k += 4) {
    const auto at = [&](size_t i) { return static_cast<size_t>(list[k + i]); };
    steps.push_back({static_cast<uint32_t>(list[k]), {at(1), at(2), at(3)}});
  }
  std::vector<HostArgument> x;
  for (const HostTensor& tensor : call.args[0].tensors) x.push_back({.given = true, .tensors = {tensor}});
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    Values values{};
    for (size_t k = 0; k < x.size(); ++k) values[CHAIN_X + k] = broadcast_to(x[k], at);
    if (call.has(1)) values[CHAIN_CONDITION] = broadcast_to(call.args[1], at);
    for (size_t k = 0; k < CHAIN_NUMBERS; ++k)
      if (call.has(3 + k)) values[CHAIN_NUMBER + k] = in_f32(call.real(3 + k));
    push(out, steps, values);
  }
}

}  // namespace pumice::engine::reference
