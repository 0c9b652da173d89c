// SPDX-License-Identifier: Apache-2.0
// out = F(x), element by element: the functions of glsl/unary.glsl, one row each. This is the shortest operator of its
// form.
#include "glsl/unary.h"

#include "ops/op.h"
#include "ops/shared/shape.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

using glsl::unary::FUNCTION;

template <FUNCTION function>
void unary(Graph& graph, Args args) {
  Tensor x = args.tensor(0), out = args.out();
  constexpr bool kMayLeave = function == FUNCTION::neg || function == FUNCTION::abs || function == FUNCTION::square;
  check(!kMayLeave || x.dtype() != DType::i64,
        "unary: neg, abs and square of i64 are written as sub, maximum and mul, which report what 32 bits cannot hold");
  check(out.dtype() == x.dtype(), "unary: the result must be %s like the input, not %s", name(x.dtype()),
        name(out.dtype()));
  if (take_textures(graph, x, out)) {
    graph.dispatch({out}, {x}, [=](Launch& launch) {
      out.resize(x.shape());
      const Texels texels = texels_of(out);
      launch.over(texels.count);
      launch.params(glsl::unary::Params{texels.count, texels.columns, texels.height});
      launch.shader = &glsl::unary::variant(glsl::unary::dtype(x.dtype()), glsl::unary::STORAGE::texture3d);
      launch.spec.push_back(static_cast<uint32_t>(function));
    });
    return;
  }
  const Shader& shader = glsl::unary::variant(glsl::unary::dtype(x.dtype()), glsl::unary::STORAGE::buffer);
  graph.dispatch_in_place({out}, {x}, [=, &shader](Launch& launch) {
    out.resize(x.shape());
    launch.shader = &shader;
    launch.params(glsl::unary::Params{.vec4_count = vec4_groups(out)});
    launch.over(vec4_groups(out));
    launch.spec.push_back(static_cast<uint32_t>(function));
  });
}

// The dtypes a function takes are a stretch of the shader's axis: f32 f16 i32 u8 i8 boolean.
template <size_t first, size_t count>
constexpr Axis kDtypes[] = {{"DTYPE", std::span(glsl::unary::kDTYPE).subspan(first, count)},
                            {"STORAGE", glsl::unary::kSTORAGE}};
constexpr std::span<const Axis> kFloat = kDtypes<0, 2>, kNumber = kDtypes<0, 5>, kInteger = kDtypes<2, 3>,
                                kBool = kDtypes<5, 1>;
static_assert(glsl::unary::kDTYPE[1] == "f16" && glsl::unary::kDTYPE[2] == "i32" &&
              glsl::unary::kDTYPE[5] == "boolean");

template <FUNCTION function>
constexpr Op row(std::string_view name, std::span<const Axis> dtypes) {
  return {{name, 1, "Tensor x -> Tensor"}, unary<function>, dtypes};
}

}  // namespace

std::span<const Op> unary_ops() {
  static constexpr Op kOps[] = {
      row<FUNCTION::gelu>("gelu", kFloat),
      row<FUNCTION::gelu_tanh>("gelu_tanh", kFloat),
      row<FUNCTION::tanh>("tanh", kFloat),
      row<FUNCTION::sigmoid>("sigmoid", kFloat),
      row<FUNCTION::silu>("silu", kFloat),
      row<FUNCTION::exp>("exp", kFloat),
      row<FUNCTION::expm1>("expm1", kFloat),
      row<FUNCTION::log>("log", kFloat),
      row<FUNCTION::log1p>("log1p", kFloat),
      row<FUNCTION::log2>("log2", kFloat),
      row<FUNCTION::log10>("log10", kFloat),
      row<FUNCTION::sqrt>("sqrt", kFloat),
      row<FUNCTION::rsqrt>("rsqrt", kFloat),
      row<FUNCTION::reciprocal>("reciprocal", kFloat),
      row<FUNCTION::sin>("sin", kFloat),
      row<FUNCTION::cos>("cos", kFloat),
      row<FUNCTION::erf>("erf", kFloat),
      row<FUNCTION::floor>("floor", kFloat),
      row<FUNCTION::ceil>("ceil", kFloat),
      row<FUNCTION::round>("round", kFloat),
      row<FUNCTION::trunc>("trunc", kFloat),
      row<FUNCTION::hardswish>("hardswish", kFloat),
      row<FUNCTION::hardsigmoid>("hardsigmoid", kFloat),
      row<FUNCTION::relu>("relu", kNumber),
      row<FUNCTION::neg>("neg", kNumber),
      row<FUNCTION::abs>("abs", kNumber),
      row<FUNCTION::sign>("sign", kNumber),
      row<FUNCTION::square>("square", kNumber),
      row<FUNCTION::bitwise_not>("bitwise_not", kInteger),
      row<FUNCTION::logical_not>("logical_not", kBool),
  };
  return kOps;
}

}  // namespace pumice::engine
