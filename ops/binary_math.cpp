// SPDX-License-Identifier: Apache-2.0
// out = F(a, b) of floats, elementwise with broadcasting; either side may be a number: the functions of
// glsl/binary_math.glsl, one row each.
//
// Error of floats: 2^-19 |y| of hypot, 2^-18 (|y| + 1) of logaddexp and logaddexp2 (their log and exp); the others
// choose: exact.
#include "glsl/binary_math.h"

#include <cmath>

#include "ops/shared/host_call.h"
#include "ops/shared/operands.h"

namespace pumice::engine {
namespace {

using glsl::binary_math::FUNCTION;

constexpr const char* kNames[] = {"hypot", "copysign", "fmax", "fmin", "logaddexp", "logaddexp2", "nextafter"};

void binary_math(Graph& graph, const Args& args, FUNCTION function) {
  const auto code = static_cast<uint32_t>(function);
  const char* const op = kNames[code];
  const Operands operands(args, op);
  const Tensor out = args.out();
  check(is_float(operands.dtype), "%s: needs floats, got %s", op, name(operands.dtype));
  check(out.dtype() == operands.dtype, "%s: output is %s, operands are %s", op, name(out.dtype()),
        name(operands.dtype));
  const uint32_t number =
      operands.a_is_number || operands.b_is_number ? number_bits(operands.number, operands.dtype, op) : 0;
  graph.dispatch({out}, {operands.a, operands.b}, [=](Launch& launch) {
    glsl::binary_math::Params params{};
    operands.launch(launch, params, code, out, op);
    params.number = number;
    launch.params(params);
    launch.shader = &glsl::binary_math::variant(glsl::binary_math::dtype(operands.dtype));
  });
}

double log_of_sum(double a, double b, double base) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (a == b && std::isinf(a)) return a;
  return std::max(a, b) + std::log1p(std::pow(base, -std::fabs(a - b))) / std::log(base);
}

HostResult of_two(FUNCTION function, double a, double b, DType dtype) {
  switch (function) {
    case FUNCTION::hypot:
      return {std::hypot(a, b), 0x1p-19 * std::hypot(a, b)};
    case FUNCTION::copysign:
      return {std::copysign(a, b)};
    case FUNCTION::fmax:
      return {std::fmax(a, b)};
    case FUNCTION::fmin:
      return {std::fmin(a, b)};
    case FUNCTION::nextafter:
      if (dtype == DType::f32) return {std::nextafter(static_cast<float>(a), static_cast<float>(b))};
      if (std::isnan(a) || std::isnan(b) || a == b) return {a == b ? b : NAN};
      if (a == 0) return {std::copysign(0x1p-24, b)};
      return {half_value(static_cast<uint16_t>(half_bits(static_cast<float>(a)) + ((b > a) == (a > 0) ? 1 : -1)))};
    default: {
      const double y = log_of_sum(a, b, function == FUNCTION::logaddexp ? M_E : 2);
      return {y, std::isfinite(y) ? 0x1p-18 * (std::fabs(y) + 1) : 0};
    }
  }
}

template <FUNCTION function>
void reference(HostCall& call) {
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    out.elements.push_back(
        of_two(function, in_f32(broadcast_to(call.args[0], at)), in_f32(broadcast_to(call.args[1], at)), out.dtype));
  }
}

template <FUNCTION function>
void build(Graph& graph, Args args) {
  binary_math(graph, args, function);
}

template <FUNCTION function>
constexpr Op row() {
  return {{kNames[static_cast<size_t>(function)], 1, "operand a, operand b -> Tensor"},
          build<function>,
          glsl::binary_math::axes,
          {"a=T[5,37] b=T[37]|T[5,1]|0.5; a=2 b=T[5,37]; a=T[37]{special} b=T[37]; a=T[37] b=T[37]{special}",
           "a=f16[1024,1024] b=f16[1024,1024]", reference<function>}};
}

}  // namespace

std::span<const Op> binary_math_ops() {
  static constexpr Op kOps[] = {
      row<FUNCTION::hypot>(),     row<FUNCTION::copysign>(),   row<FUNCTION::fmax>(),      row<FUNCTION::fmin>(),
      row<FUNCTION::logaddexp>(), row<FUNCTION::logaddexp2>(), row<FUNCTION::nextafter>(),
  };
  return kOps;
}

}  // namespace pumice::engine
