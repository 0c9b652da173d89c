// SPDX-License-Identifier: Apache-2.0
// triu and tril: the part of every matrix on and above, or on and below, a diagonal; zeros elsewhere.
#include "glsl/tri.h"

#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

template <bool kUpper>
void tri(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const SymInt diagonal = args.size(1);
  check(x.rank() >= 2, "triu, tril: rank %u, needs a matrix", x.rank());
  check(x.dtype() == out.dtype(), "triu, tril: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    out.resize(x.shape());
    launch.params(glsl::tri::Params{.count = u32(out.numel()),
                                    .rows = u32(x.dim(-2)),
                                    .columns = u32(x.dim(-1)),
                                    .diagonal = static_cast<int32_t>(u32(launch.size(diagonal)))});
    launch.shader = &glsl::tri::variant(bits<glsl::tri::BITS>(x.dtype()));
    launch.over(vec4_groups(out));
    launch.outer = out.rank() - 2;
    launch.spec.push_back(kUpper);
  });
}

// Of the kernel bench.
constexpr std::string_view kCases = "x=T[5,7] diagonal=0|-1|2; x=i64[2,3,4] diagonal=1; x=u8[7,5] diagonal=-2";

}  // namespace

std::span<const Op> tri_ops() {
  static constexpr Op kOps[] = {
      {{"triu", 1, "Tensor x, size diagonal -> Tensor"}, tri<true>, glsl::tri::axes, {kCases, "", reference::triu}},
      {{"tril", 1, "Tensor x, size diagonal -> Tensor"}, tri<false>, glsl::tri::axes, {kCases, "", reference::tril}}};
  return kOps;
}

}  // namespace pumice::engine
