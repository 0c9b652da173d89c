// SPDX-License-Identifier: Apache-2.0
// layer_norm and rms_norm over the last `count` dimensions.
#include "glsl/norm.h"

#include "ops/common/rows.h"
#include "ops/common/shape.h"
#include "ops/op.h"

namespace pumice {
namespace {

void norm(Graph& graph, const char* op, Tensor out, Tensor x, int64_t count, Tensor weight, Tensor bias, double eps,
          bool center) {
  check(count >= 1 && count <= x.rank(), "%s: over %lld dimensions of %u", op, static_cast<long long>(count), x.rank());
  check(x.dtype() == out.dtype(), "%s: input is %s, output %s", op, name(x.dtype()), name(out.dtype()));
  for (const Tensor& factor : {weight, bias}) {
    check(!factor || factor.dtype() == x.dtype(), "%s: input is %s, a factor %s", op, name(x.dtype()),
          name(factor.dtype()));
  }
  const auto first = static_cast<int64_t>(x.rank()) - count;
  graph.dispatch({out}, {x, weight ? weight : x, bias ? bias : x}, [=](Launch& launch) {
    out.resize(x.shape());
    const uint32_t width = u32(x.numel(first, x.rank()));
    for (const Tensor& factor : {weight, bias}) {
      check(!factor || factor.numel() == width, "%s: a factor has %lld elements, a row %u", op,
            static_cast<long long>(factor.numel()), width);
    }
    if (out.numel() == 0) return;
    const uint32_t rows = u32(x.numel()) / width;
    launch.params(glsl::norm::Params{.rows = rows, .width = width, .eps = static_cast<float>(eps)});
    launch.shader = &glsl::norm::variant(glsl::norm::dtype(x.dtype()));
    launch_rows(launch, rows, width);
    launch.spec.insert(launch.spec.end(), {center, static_cast<bool>(weight), static_cast<bool>(bias)});
  });
}

void layer_norm(Graph& graph, Args args) {
  norm(graph, "layer_norm", args.out(), args.tensor(0), args.integer(1), args.tensor(2), args.tensor(3), args.real(4),
       true);
}

void rms_norm(Graph& graph, Args args) {
  norm(graph, "rms_norm", args.out(), args.tensor(0), args.integer(1), args.tensor(2), {}, args.real(3), false);
}

}  // namespace

std::span<const Op> norm_ops() {
  static constexpr Op kOps[] = {
      {{"layer_norm", 1, "Tensor x, int count, Tensor? weight, Tensor? bias, float eps -> Tensor"},
       layer_norm,
       glsl::norm::axes},
      {{"rms_norm", 1, "Tensor x, int count, Tensor? weight, float eps -> Tensor"}, rms_norm, glsl::norm::axes},
  };
  return kOps;
}

}  // namespace pumice
