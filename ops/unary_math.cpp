// SPDX-License-Identifier: Apache-2.0
// out = F(x), element by element: the functions of glsl/unary_math.glsl, one row each.
#include "glsl/unary_math.h"

#include <cmath>

#include "ops/shared/unary.h"

namespace pumice::engine {
namespace {

using glsl::unary_math::FUNCTION;

void add(Graph& graph, const Args& args, FUNCTION function) {
  using namespace glsl::unary_math;
  const auto shader = [](DType of, int storage) -> const Shader& {
    return variant(dtype(of), static_cast<STORAGE>(storage));
  };
  unary<Params>(graph, args, shader, {static_cast<uint32_t>(function)});
}

template <FUNCTION function>
void build(Graph& graph, Args args) {
  add(graph, args, function);
}

constexpr Axis kOfF32[] = {{"DTYPE", std::span(glsl::unary_math::kDTYPE).first(1)},
                           {"STORAGE", glsl::unary_math::kSTORAGE}};

template <FUNCTION function>
constexpr Op row(std::string_view name, std::string_view test, void (*reference)(HostCall&)) {
  return {{name, 1, kUnaryParams},
          build<function>,
          function == FUNCTION::round_bfloat16 ? std::span(kOfF32) : std::span(glsl::unary_math::axes),
          {test, kUnaryBench, reference}};
}

constexpr std::string_view kInsideOne = "x=T[3,5,37]{-1..1} storage=buffer|texture3d; x=T[9]{special}";
constexpr std::string_view kFromOne = "x=T[3,5,37]{1..40} storage=buffer|texture3d; x=T[9]{special}";
// Above their zeros, near which the error is absolute.
constexpr std::string_view kPositive = "x=T[3,5,37]{2.5..20} storage=buffer|texture3d; x=T[9]{special}";

double digamma(double x) {
  if (x == 0) return std::copysign(INFINITY, -x);
  if (x < 0 && std::floor(x) == x) return NAN;
  if (x < 0) return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::floor(x)));
  if (std::isinf(x)) return x;
  double sum = 0;
  for (; x < 20; x += 1) sum -= 1 / x;
  const double s = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s / 240)));
}

// The nearest number of 8 bits, ties to even.
double bfloat16(double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7), y = std::nearbyint(x / ulp) * ulp;
  return std::fabs(y) > 0x1.fep127 ? std::copysign(INFINITY, x) : y;
}

}  // namespace

std::span<const Op> unary_math_ops() {
  static constexpr Op kOps[] = {
      row<FUNCTION::asin>("asin", kInsideOne, unary_reference<std::asin>),
      row<FUNCTION::acos>("acos", kInsideOne, unary_reference<std::acos>),
      row<FUNCTION::sinh>("sinh", kUnaryCases, unary_reference<std::sinh>),
      row<FUNCTION::cosh>("cosh", kUnaryCases, unary_reference<std::cosh>),
      row<FUNCTION::tan>("tan", kUnaryCases, unary_reference<std::tan>),
      row<FUNCTION::asinh>("asinh", kUnaryCases, unary_reference<std::asinh>),
      row<FUNCTION::acosh>("acosh", kFromOne, unary_reference<std::acosh>),
      row<FUNCTION::atanh>("atanh", kInsideOne, unary_reference<std::atanh>),
      row<FUNCTION::exp2>("exp2", kUnaryCases, unary_reference<std::exp2>),
      row<FUNCTION::erfc>("erfc", kUnaryCases, unary_reference<std::erfc>),
      row<FUNCTION::lgamma>("lgamma", kPositive, unary_reference<std::lgamma>),
      row<FUNCTION::digamma>("digamma", kPositive, unary_reference<digamma>),
      row<FUNCTION::round_bfloat16>("round_bfloat16", kUnaryCases, exact_unary_reference<bfloat16>),
  };
  return kOps;
}

}  // namespace pumice::engine
