// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax over the last dimension (Python moves another one there).
#include "glsl/softmax.h"

#include "ops/op.h"
#include "ops/shared/rows.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

template <bool kLog>
void softmax(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const uint32_t dim = axis(args.integer(1), x.rank(), "softmax");
  check(dim + 1 == x.rank(), "softmax: dimension %u of %u, must be the last", dim, x.rank());
  check(x.dtype() == out.dtype(), "softmax: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    out.resize(x.shape());
    if (out.numel() == 0) return;
    const uint32_t width = u32(x.dim(-1)), rows = u32(x.numel()) / width;
    launch.params(glsl::softmax::Params{.rows = rows, .width = width});
    launch.shader = &glsl::softmax::variant(glsl::softmax::dtype(x.dtype()));
    launch_rows(launch, rows, width);
    launch.spec.push_back(kLog);
  });
}

}  // namespace

std::span<const Op> softmax_ops() {
  static constexpr Op kOps[] = {
      {{"softmax", 1, "Tensor x, int dim -> Tensor"}, softmax<false>, glsl::softmax::axes},
      {{"log_softmax", 1, "Tensor x, int dim -> Tensor"}, softmax<true>, glsl::softmax::axes}};
  return kOps;
}

}  // namespace pumice::engine
