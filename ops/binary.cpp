// SPDX-License-Identifier: Apache-2.0
// out = a OP b, elementwise with broadcasting. Tensors have one dtype (Python casts by PyTorch's promotion); either
// side may be a number. Integers wrap; an i64 result that 32 bits cannot hold is an error of the run.
#include "glsl/binary.h"

#include <cmath>

#include "glsl/binary_compare.h"
#include "glsl/include/core/modes.glslh"
#include "glsl/include/math/activation.glslh"
#include "ops/conv/channels_last_product.h"
#include "ops/conv/scaled_image.h"
#include "ops/reference/pointwise.h"
#include "ops/shared/operands.h"

namespace pumice::engine {
namespace {

constexpr bool is_bitwise(uint32_t code) {
  return code == BINARY_AND || code == BINARY_OR || code == BINARY_XOR;
}
constexpr bool is_of_floats(uint32_t code) {
  return code == BINARY_DIV || code >= BINARY_ATAN2;
}

void arithmetic(Graph& graph, const Args& args, const char* op, uint32_t code) {
  const Operands operands(args, op);
  const Tensor out = args.out();
  const DType dtype = operands.dtype;
  check(out.dtype() == dtype, "%s: output is %s, operands are %s", op, name(out.dtype()), name(dtype));
  check(!is_bitwise(code) || !is_float(dtype), "%s: needs integers, got %s", op, name(dtype));
  check(!is_of_floats(code) || is_float(dtype), "%s: needs floats, got %s", op, name(dtype));
  const bool has_number = operands.a_is_number || operands.b_is_number;
  const bool adds = !has_number && ((code == BINARY_ADD && args.real(2) == 1) || code == BINARY_ADD_RELU);
  const Addition addition{.other = operands.b, .act = code == BINARY_ADD_RELU ? ACT_RELU : ACT_NONE};
  if (adds && is_float(dtype) && try_convolution_with(graph, out, operands.a, addition)) return;
  const uint32_t number = has_number ? number_bits(operands.number, dtype, op) : 0;
  const bool has_alpha = code == BINARY_ADD || code == BINARY_SUB;
  const bool may_report = !is_float(dtype) && dtype != DType::boolean;
  const uint32_t alpha = has_alpha ? number_bits(args.real(2), dtype == DType::f16 ? DType::f32 : dtype, op) : 0;

  const auto write = [=, &graph] {
    graph.dispatch(reporting(graph, out, may_report), {operands.a, operands.b},
                   [=, call = graph.call_id()](Launch& launch) {
                     glsl::binary::Params params{};
                     operands.launch(launch, params, code, out, op);
                     params.number = number;
                     params.alpha = alpha;
                     params.call = call;
                     launch.params(params);
                     launch.shader = &glsl::binary::variant(glsl::binary::dtype(dtype));
                   });
  };
  const bool multiplies = code == BINARY_MUL && !has_number;
  if (!multiplies || !defer_scaled_image(graph, out, operands.a, operands.b, write)) write();
}

void comparison(Graph& graph, const Args& args, const char* op, uint32_t code) {
  const Operands operands(args, op);
  const Tensor out = args.out();
  const DType dtype = operands.dtype;
  check(out.dtype() == DType::boolean, "%s: output must be bool, got %s", op, name(out.dtype()));
  uint32_t number = 0;
  if (operands.a_is_number || operands.b_is_number) {
    // PyTorch rounds the number to the tensor's dtype before it compares.
    const double value = operands.number;
    number = number_bits(dtype == DType::f16 ? half_value(half_bits(static_cast<float>(value))) : value, dtype, op);
  }
  graph.dispatch({out}, {operands.a, operands.b}, [=](Launch& launch) {
    glsl::binary_compare::Params params{};
    operands.launch(launch, params, code, out, op);
    params.number = number;
    launch.params(params);
    launch.shader = &glsl::binary_compare::variant(glsl::binary_compare::dtype(dtype));
  });
}

// Names in the order of the codes, from BINARY_ADD and from COMPARE_EQ.
constexpr const char* kArithmetic[] = {"add",        "sub",         "mul",     "div",     "div_floor", "div_trunc",
                                       "remainder",  "fmod",        "maximum", "minimum", "pow",       "bitwise_and",
                                       "bitwise_or", "bitwise_xor", "atan2",   "prelu",   "elu",       "add_relu"};
constexpr const char* kComparison[] = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"};
static_assert(std::size(kArithmetic) == BINARY_ADD_RELU + 1 && std::size(kComparison) == LOGICAL_XOR + 1);

template <uint32_t kCode>
void arithmetic(Graph& graph, Args args) {
  arithmetic(graph, args, kArithmetic[kCode], kCode);
}
template <uint32_t kCode>
void comparison(Graph& graph, Args args) {
  comparison(graph, args, kComparison[kCode], kCode);
}

// The dtypes that an operator takes are a range of the shader's axis.
static_assert(glsl::binary::kDTYPE[1] == "f16" && glsl::binary::kDTYPE[2] == "i32" &&
              glsl::binary::kDTYPE[6] == "boolean");
constexpr Axis kFloats[] = {{"DTYPE", std::span(glsl::binary::kDTYPE).first(2)}};
constexpr Axis kNumbers[] = {{"DTYPE", std::span(glsl::binary::kDTYPE).first(6)}};
constexpr Axis kIntegers[] = {{"DTYPE", std::span(glsl::binary::kDTYPE).subspan(2)}};

template <uint32_t kCode>
void arithmetic_reference(HostCall& call) {
  reference::arithmetic(call, kCode);
}
template <uint32_t kCode>
void comparison_reference(HostCall& call) {
  reference::comparison(call, kCode);
}

// Of the kernel bench.
constexpr std::string_view cases_of(uint32_t code) {
  if (code == BINARY_ADD || code == BINARY_SUB)
    return "a=T[5,37] b=T[37]|T[5,1]|0.5 alpha=1|2; a=i32[5,37] b=i32[5,37]|3 alpha=2; a=3 b=i64[5,37] alpha=-2; "
           "a=i32[37]{2000000000..2100000000} b=i32[37]{-2100000000..2100000000} alpha=1; "
           "a=i64[37]{2000000000..2100000000} b=i64[37]{-2100000000..2100000000} alpha=1; a=u8[37] b=u8[37] alpha=1";
  if (is_bitwise(code))
    return "a=i32[5,37] b=i32[37]|5; a=u8[5,37] b=u8[5,37]; a=bool[37] b=bool[37]; a=i64[37] b=i64[37]";
  if (code == BINARY_PRELU || code == BINARY_ADD_RELU) return "a=T[5,37] b=T[5,37]|T[37]";
  if (code == BINARY_ELU) return "a=T[5,37] b=0.5|1";
  if (code == BINARY_ATAN2) return "a=T[5,37] b=T[37]|0.5; a=T[5,37]{0.1..2} b=T[37]{0.5..2}";
  if (code == BINARY_POW)
    return "a=T[5,37]{0.1..2} b=T[37]{0.5..2}|0.5|2|-3; a=i32[5,37]{-5..5} b=i32[37]{-2..9}|3; "
           "a=i64[37]{-5..5} b=i64[37]{0..9}; a=i64[37]{2..9} b=i64[37]{9..19}";
  if (code >= BINARY_DIV_FLOOR && code <= BINARY_FMOD)
    return "a=T[5,37] b=T[37]{0.5..2}|T[37]{-2..-0.5}|0.5; a=i32[5,37] b=i32[5,37]{1..9}|i32[37]{-9..-1}|3; "
           "a=i64[5,37] b=i64[37]{-9..-1}; a=i32[37] b=i32[37]{0..1}; a=u8[37] b=u8[37]{1..9}";
  if (is_of_floats(code)) return "a=T[5,37] b=T[37]{0.5..2}|T[37]{-2..-0.5}|0.5";
  return "a=T[5,37] b=T[37]{0.5..2}|0.5; a=i32[5,37] b=i32[5,37]{1..9}|3; a=i64[37] b=i64[37]; a=T[37]{special} "
         "b=T[37]; "
         "a=i32[37]{-100000..100000} b=i32[37]{-100000..100000}; a=i64[37]{70000..100000} b=i64[37]{-70000..100000}";
}

template <uint32_t kCode>
constexpr Op arithmetic_op() {
  constexpr bool kAlpha = kCode == BINARY_ADD || kCode == BINARY_SUB;
  constexpr bool kOfBools =  // PyTorch has none of the others
      kCode == BINARY_ADD || kCode == BINARY_MUL || kCode == BINARY_MAXIMUM || kCode == BINARY_MINIMUM;
  constexpr std::span<const Axis> kDtypes = is_of_floats(kCode) ? kFloats
                                            : is_bitwise(kCode) ? kIntegers
                                            : kOfBools          ? std::span(glsl::binary::axes)
                                                                : std::span(kNumbers);
  return {{kArithmetic[kCode], 1,
           kAlpha ? "operand a, operand b, float alpha -> Tensor" : "operand a, operand b -> Tensor"},
          arithmetic<kCode>,
          kDtypes,
          {cases_of(kCode),
           kAlpha                ? "a=f16[1024,1024] b=f16[1024,1024] alpha=1"
           : is_bitwise(kCode)   ? "a=i32[1024,1024] b=i32[1024,1024]"
           : kCode == BINARY_ELU ? "a=f16[1024,1024] b=0.5"
                                 : "a=f16[1024,1024]{0.5..2} b=f16[1024,1024]{0.5..2}",
           arithmetic_reference<kCode>}};
}
template <uint32_t kCode>
constexpr Op comparison_op() {
  return {{kComparison[kCode], 1, "operand a, operand b -> Tensor"},
          comparison<kCode>,
          glsl::binary_compare::axes,
          {"a=T[5,37]{-1..1} b=T[37]{-1..1}|0.5 -> bool[5,37]; a=i32[5,37]{0..3} b=i32[37]{0..3}|1 -> bool[5,37]",
           "a=f16[1024,1024] b=0.5 -> bool[1024,1024]", comparison_reference<kCode>}};
}

}  // namespace

std::span<const Op> binary_ops() {
  static constexpr Op kOps[] = {
      arithmetic_op<BINARY_ADD>(),       arithmetic_op<BINARY_SUB>(),       arithmetic_op<BINARY_MUL>(),
      arithmetic_op<BINARY_DIV>(),       arithmetic_op<BINARY_DIV_FLOOR>(), arithmetic_op<BINARY_DIV_TRUNC>(),
      arithmetic_op<BINARY_REMAINDER>(), arithmetic_op<BINARY_FMOD>(),      arithmetic_op<BINARY_MAXIMUM>(),
      arithmetic_op<BINARY_MINIMUM>(),   arithmetic_op<BINARY_POW>(),       arithmetic_op<BINARY_AND>(),
      arithmetic_op<BINARY_OR>(),        arithmetic_op<BINARY_XOR>(),       arithmetic_op<BINARY_ATAN2>(),
      arithmetic_op<BINARY_PRELU>(),     arithmetic_op<BINARY_ELU>(),       arithmetic_op<BINARY_ADD_RELU>(),
      comparison_op<COMPARE_EQ>(),       comparison_op<COMPARE_NE>(),       comparison_op<COMPARE_LT>(),
      comparison_op<COMPARE_LE>(),       comparison_op<COMPARE_GT>(),       comparison_op<COMPARE_GE>(),
      comparison_op<LOGICAL_AND>(),      comparison_op<LOGICAL_OR>(),       comparison_op<LOGICAL_XOR>(),
  };
  return kOps;
}

}  // namespace pumice::engine
