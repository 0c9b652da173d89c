// SPDX-License-Identifier: Apache-2.0
// Constant padding. `pads` as in torch.nn.functional.pad: before and after the last dimension, then the one before
// it, and so on; negative ones cut off.
#include "glsl/pad.h"

#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void pad(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const std::vector<SymInt> pads = args.sizes(1);
  const uint32_t rank = x.rank();
  check(pads.size() % 2 == 0 && pads.size() / 2 <= rank, "pad: %zu pads for rank %u", pads.size(), rank);
  check(x.dtype() == out.dtype(), "pad: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  const uint32_t value = element_bits(args.real(2), out.dtype(), "pad");
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    Shape shape = x.shape(), before(rank, 0);
    for (size_t k = 0; k < pads.size() / 2; ++k) {
      const size_t d = rank - 1 - k;
      before[d] = launch.size(pads[2 * k]);
      shape[d] += before[d] + launch.size(pads[2 * k + 1]);
      check(shape[d] >= 0, "pad: dimension %zu gets the size %lld", d, static_cast<long long>(shape[d]));
    }
    out.resize(shape);
    glsl::pad::Params params{.count = u32(out.numel()), .rank = 0, .value = value};
    for (uint32_t d = 0; d < rank; ++d) {
      const bool padded = before[d] != 0 || shape[d] != x.dim(d);
      // A dimension without padding merges into the one before it: all three numbers scale.
      if (!padded && params.rank > 0) {
        const int64_t size = shape[d];
        const uint32_t last = params.rank - 1;
        params.size[last] = u32(params.size[last] * size);
        params.in_size[last] = u32(params.in_size[last] * size);
        params.before[last] = static_cast<int32_t>(u32(params.before[last] * size));
        continue;
      }
      params.size[params.rank] = u32(shape[d]);
      params.in_size[params.rank] = u32(x.dim(d));
      params.before[params.rank++] = static_cast<int32_t>(u32(before[d]));
    }
    launch.params(params);
    launch.shader = &glsl::pad::variant(bits<glsl::pad::BITS>(out.dtype()));
    launch.over(vec4_groups(out));
  });
}

}  // namespace

std::span<const Op> pad_ops() {
  static constexpr Op kOps[] = {
      {{"pad", 1, "Tensor x, sizes pads, float value -> Tensor"},
       pad,
       glsl::pad::axes,
       {"x=T[3,5] pads=[1,2,0,1] value=0.5 -> T[4,8]; "
        "x=T[2,3,4] pads=[0,0,-1,2] value=-1 -> T[2,4,4]; x=i64[3] pads=[1,1] value=-9 -> i64[5]; "
        "x=i8[2,9] pads=[3,-2] value=1 -> i8[2,10]",
        "", reference::pad}}};
  return kOps;
}

}  // namespace pumice::engine
