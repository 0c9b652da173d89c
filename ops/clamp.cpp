// SPDX-License-Identifier: Apache-2.0
// out = min(max(x, low), high); a bound may be absent. Bounds of an integer tensor must be whole numbers.
#include "glsl/clamp.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/reference/pointwise.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

uint32_t bound(const Args& args, uint32_t index, DType dtype, double none) {
  double number = args.has(index) ? args.real(index) : none;
  if (is_float(dtype)) return number_bits(number, DType::f32, "clamp");
  check(!std::isnan(number), "clamp: a bound of an integer tensor is NaN");
  // The kernel compares 32-bit integers. A bound beyond all of them has no effect on one side and is an error on the
  // other.
  const bool low = index == 1;
  check(low ? number <= 2147483647.0 : number >= -2147483648.0, "clamp: the bound %g leaves the 32 bits that %s has",
        number, name(dtype));
  return number_bits(std::clamp(number, -2147483648.0, 2147483647.0), DType::i32, "clamp");
}

void clamp(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const DType dtype = x.dtype();
  check(out.dtype() == dtype, "clamp: output is %s, input %s", name(out.dtype()), name(dtype));
  const uint32_t low = bound(args, 1, dtype, -INFINITY), high = bound(args, 2, dtype, INFINITY);
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    out.resize(x.shape());
    launch.params(glsl::clamp::Params{.count = u32(out.numel()), .low = low, .high = high});
    launch.shader = &glsl::clamp::variant(glsl::clamp::dtype(dtype));
    launch.over(vec4_groups(out));
    launch.outer = out.rank();
  });
}

}  // namespace

std::span<const Op> clamp_ops() {
  static constexpr Op kOps[] = {{{"clamp", 1, "Tensor x, float? low, float? high -> Tensor"},
                                 clamp,
                                 glsl::clamp::axes,
                                 {"x=T[5,37] low=-0.5 high=0.75; "
                                  "x=T[7] high=0; "
                                  "x=T[37]{special} low=-0.5 high=0.75; "
                                  "x=T[7] low=0.5 high=-0.5; "
                                  "x=i32[5,37]|i64[37] low=-10; "
                                  "x=u8[37] low=7 high=9",
                                  "x=f16[1024,1024] low=-0.5 high=0.75", reference::clamp}}};
  return kOps;
}

}  // namespace pumice::engine
