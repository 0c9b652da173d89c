// SPDX-License-Identifier: Apache-2.0
// out = table[x], element by element: any function of one 8-bit integer. `table`: a constant of 256 of out's integers,
// in order of x's bits (of i8: 0..127, -128..-1). Exact.
#include "glsl/lookup.h"

#include "ops/op.h"
#include "ops/quant/qparams.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void lookup(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), table = args.tensor(1), out = args.out();
  check(is_byte(x.dtype()) && is_byte(out.dtype()) && table.dtype() == out.dtype(),
        "lookup: x is %s, the table %s, the output %s", name(x.dtype()), name(table.dtype()), name(out.dtype()));
  check(table.is_constant() && table.numel() == 256, "lookup: the table must be a constant of 256 elements");
  graph.dispatch({out}, {x, table}, [=](Launch& launch) {
    out.resize(x.shape());
    launch.params(glsl::lookup::Params{.count = u32(out.numel())});
    launch.shader = &glsl::lookup::variant();
    launch.over(vec4_groups(out));
  });
}

constexpr std::string_view kBytes[] = {"i8", "u8"};
constexpr Axis kAxes[] = {{"DTYPE", kBytes}};

}  // namespace

std::span<const Op> lookup_ops() {
  static constexpr Op kOps[] = {{{"lookup", 1, "Tensor x, Tensor table -> Tensor"},
                                 lookup,
                                 kAxes,
                                 {"x=i8[5,37] table=const:i8[256]; "
                                  "x=u8[37] table=const:u8[256]",
                                  "x=i8[1024,1024] table=const:i8[256]", reference::lookup}}};
  return kOps;
}

}  // namespace pumice::engine
