// SPDX-License-Identifier: Apache-2.0
// out = atan(x), element by element.
#include "glsl/atan.h"

#include "ops/shared/unary.h"

namespace pumice::engine {
namespace {

void atan(Graph& graph, Args args) {
  using namespace glsl::atan;
  unary<Params>(graph, args, [](DType type, int storage) -> const Shader& {
    return variant(dtype(type), static_cast<STORAGE>(storage));
  });
}

}  // namespace

std::span<const Op> atan_ops() {
  static constexpr Op kOps[] = {
      {{"atan", 1, kUnaryParams}, atan, glsl::atan::axes, {kUnaryCases, kUnaryBench, unary_reference<std::atan>}}};
  return kOps;
}

}  // namespace pumice::engine
