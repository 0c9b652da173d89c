// SPDX-License-Identifier: Apache-2.0
// out = F(x), element by element: the functions of glsl/unary.glsl, one row each. A function of its own file: atan.
#include "glsl/unary.h"

#include <algorithm>
#include <cmath>

#include "ops/reference/functions.h"
#include "ops/shared/unary.h"

namespace pumice::engine {
namespace {

using glsl::unary::FUNCTION;

constexpr bool may_leave(FUNCTION function) {
  return function == FUNCTION::neg || function == FUNCTION::abs || function == FUNCTION::square;
}

void add(Graph& graph, const Args& args, FUNCTION function) {
  check(!may_leave(function) || args.tensor(0).dtype() != DType::i64,
        "unary: neg, abs and square of i64 are written as sub, maximum and mul, which report what 32 bits cannot hold");
  const auto variant = [](DType dtype, int storage) -> const Shader& {
    return glsl::unary::variant(glsl::unary::dtype(dtype), static_cast<glsl::unary::STORAGE>(storage));
  };
  unary<glsl::unary::Params>(graph, args, variant, {static_cast<uint32_t>(function)});
}

template <FUNCTION function>
void build(Graph& graph, Args args) {
  add(graph, args, function);
}

// The dtypes a function takes are a stretch of the shader's axis: f32 f16 i32 u8 i8 boolean.
template <size_t first, size_t count>
constexpr Axis kDtypes[] = {{"DTYPE", std::span(glsl::unary::kDTYPE).subspan(first, count)},
                            {"STORAGE", glsl::unary::kSTORAGE}};
static_assert(glsl::unary::kDTYPE[1] == "f16" && glsl::unary::kDTYPE[2] == "i32" &&
              glsl::unary::kDTYPE[5] == "boolean");

// What a function accepts, and the cases of the kernel bench for it.
struct Accepted {
  std::span<const Axis> axes;
  std::string_view test, bench = "";
};
constexpr Accepted kFloat{kDtypes<0, 2>, kUnaryCases, kUnaryBench};
constexpr Accepted kNumber{kDtypes<0, 5>, "x=T[3,5,37] storage=buffer|texture3d; x=i32[3,37]; x=i8[37]{-9..9}"};
constexpr Accepted kSign{kDtypes<0, 6>,
                         "x=T[3,5,37] storage=buffer|texture3d; x=i32[3,37]; x=i8[37]{-9..9}; x=bool[37]"};
constexpr Accepted kInteger{kDtypes<2, 3>, "x=i32[3,37] storage=buffer|texture3d; x=u8[37]; x=i8[37]"};
constexpr Accepted kBool{kDtypes<5, 1>, "x=bool[3,37] storage=buffer|texture3d"};

template <FUNCTION function>
constexpr Op row(std::string_view name, const Accepted& accepted, void (*reference)(HostCall&) = nullptr) {
  return {{name, 1, kUnaryParams},
          build<function>,
          accepted.axes,
          {accepted.test, accepted.bench, reference},
          may_leave(function) ? "i64" : ""};
}

double sign(double x) {
  return (x > 0) - (x < 0);
}
double bitwise_not(double x) {
  return -x - 1;
}
double logical_not(double x) {
  return x == 0;
}

}  // namespace

std::span<const Op> unary_ops() {
  static constexpr Op kOps[] = {
      row<FUNCTION::gelu>("gelu", kFloat, unary_reference<reference::gelu>),
      row<FUNCTION::gelu_tanh>("gelu_tanh", kFloat, unary_reference<reference::gelu_tanh>),
      row<FUNCTION::tanh>("tanh", kFloat, unary_reference<std::tanh>),
      row<FUNCTION::sigmoid>("sigmoid", kFloat, unary_reference<reference::sigmoid>),
      row<FUNCTION::silu>("silu", kFloat, unary_reference<reference::silu>),
      row<FUNCTION::exp>("exp", kFloat, unary_reference<std::exp>),
      row<FUNCTION::expm1>("expm1", kFloat, unary_reference<std::expm1>),
      row<FUNCTION::log>("log", kFloat, unary_reference<std::log>),
      row<FUNCTION::log1p>("log1p", kFloat, unary_reference<std::log1p>),
      row<FUNCTION::log2>("log2", kFloat, unary_reference<std::log2>),
      row<FUNCTION::log10>("log10", kFloat, unary_reference<std::log10>),
      row<FUNCTION::sqrt>("sqrt", kFloat, unary_reference<std::sqrt>),
      row<FUNCTION::rsqrt>("rsqrt", kFloat, unary_reference<reference::rsqrt>),
      row<FUNCTION::reciprocal>("reciprocal", kFloat, unary_reference<reference::reciprocal>),
      row<FUNCTION::sin>("sin", kFloat, unary_reference<std::sin>),
      row<FUNCTION::cos>("cos", kFloat, unary_reference<std::cos>),
      row<FUNCTION::erf>("erf", kFloat, unary_reference<std::erf>),
      row<FUNCTION::floor>("floor", kFloat, exact_unary_reference<std::floor>),
      row<FUNCTION::ceil>("ceil", kFloat, exact_unary_reference<std::ceil>),
      row<FUNCTION::round>("round", kFloat, exact_unary_reference<std::nearbyint>),
      row<FUNCTION::trunc>("trunc", kFloat, exact_unary_reference<std::trunc>),
      row<FUNCTION::hardswish>("hardswish", kFloat, unary_reference<reference::hardswish>),
      row<FUNCTION::hardsigmoid>("hardsigmoid", kFloat, unary_reference<reference::hardsigmoid>),
      row<FUNCTION::relu>("relu", kNumber, exact_unary_reference<reference::relu>),
      row<FUNCTION::neg>("neg", kNumber, exact_unary_reference<reference::neg>),
      row<FUNCTION::abs>("abs", kNumber, exact_unary_reference<std::fabs>),
      row<FUNCTION::sign>("sign", kSign, exact_unary_reference<sign>),
      row<FUNCTION::square>("square", kNumber, exact_unary_reference<reference::square>),
      row<FUNCTION::bitwise_not>("bitwise_not", kInteger, exact_unary_reference<bitwise_not>),
      row<FUNCTION::logical_not>("logical_not", kBool, exact_unary_reference<logical_not>),
  };
  return kOps;
}

}  // namespace pumice::engine
