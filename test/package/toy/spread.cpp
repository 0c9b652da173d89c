// SPDX-License-Identifier: Apache-2.0
// out = scale * (max - min) of each row of x: the operator that test_adding_an_operator.py adds.
#include "glsl/spread.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/shared/host_call.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void spread(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const auto scale = static_cast<float>(args.real(1));
  check(x.dtype() == out.dtype(), "spread: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  check(x.rank() >= 1, "spread: x has no dimension");
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    Shape shape = x.shape();
    shape.pop_back();
    check(x.dim(-1) > 0, "spread: rows without elements");
    out.resize(shape);
    launch.over(vec4_groups(out));
    launch.params(glsl::spread::Params{.rows = u32(out.numel()), .width = u32(x.dim(-1)), .scale = scale});
    launch.shader = &glsl::spread::variant(glsl::spread::dtype(x.dtype()));
    launch.flops = 2ull * static_cast<uint64_t>(x.numel());
  });
}

// Two roundings in fp32.
void reference(HostCall& call) {
  const std::vector<double>& x = call.tensor(0).values;
  const auto width = static_cast<size_t>(call.tensor(0).dim(-1));
  for (size_t row = 0; row < x.size(); row += width) {
    const auto [low, high] = std::minmax_element(&x[row], &x[row] + width);
    const double y = call.real(1) * (*high - *low);
    call.out().push(y, 0x1p-22 * std::fabs(y));
  }
}

}  // namespace

std::span<const Op> spread_ops() {
  static constexpr Op kOps[] = {{{"spread", 1, "Tensor x, float scale -> Tensor"},
                                 spread,
                                 glsl::spread::axes,
                                 {"x=T[5,37] scale=0.5|2 -> T[5]; x=T[2,3,9] scale=1 -> T[2,3]",
                                  "x=f16[512,512] scale=2 -> f16[512]", reference}}};
  return kOps;
}

}  // namespace pumice::engine
