// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax over the last dimension (Python moves another one there).
#include "glsl/softmax.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/shared/host_call.h"
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
    launch_rows(launch, rows, width, lanes_of_row(width));
    launch.spec.push_back(kLog);
    launch.outer = dim;
  });
}

// Of the kernel bench. The bound is that of exp in fp32 and of a sum over the row.
template <bool kLog>
void reference(HostCall& call) {
  const std::vector<double>& x = call.tensor(0).values;
  const auto width = static_cast<size_t>(call.tensor(0).dim(-1));
  for (size_t row = 0; row < x.size(); row += width) {
    const double most = *std::max_element(&x[row], &x[row] + width);
    double sum = 0;
    for (size_t k = row; k < row + width; ++k) sum += std::exp(x[k] - most);
    for (size_t k = row; k < row + width; ++k) {
      const double y = kLog ? x[k] - most - std::log(sum) : std::exp(x[k] - most) / sum;
      call.out().push(y, 0x1p-15 * std::fabs(y) + 0x1p-23);
    }
  }
}

}  // namespace

std::span<const Op> softmax_ops() {
  static constexpr Op kOps[] = {{{"softmax", 1, "Tensor x, int dim -> Tensor"},
                                 softmax<false>,
                                 glsl::softmax::axes,
                                 {"x=T[5,37] dim=-1|1; "
                                  "x=T[2,3,600] dim=2",
                                  "x=f16[32,512,768] dim=-1", reference<false>}},
                                {{"log_softmax", 1, "Tensor x, int dim -> Tensor"},
                                 softmax<true>,
                                 glsl::softmax::axes,
                                 {"x=T[5,37] dim=-1|1; "
                                  "x=T[2,3,600] dim=2",
                                  "x=f16[32,512,768] dim=-1", reference<true>}}};

  return kOps;
}

}  // namespace pumice::engine
