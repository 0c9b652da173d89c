// SPDX-License-Identifier: Apache-2.0
// Resizes the last two dimensions to `size`, as PyTorch's upsample_nearest2d (mode 0), upsample_bilinear2d (1) and that
// with align_corners (2). `scale_h`, `scale_w`: output elements for each input element, where that is not the quotient
// of the sizes.
//
// Error of bilinear: |err| <= u |y| + 2^-22 * (size + 8) * (the largest of the four elements): positions are computed
// in fp32.
#include "glsl/upsample2d.h"

#include <cinttypes>

#include "ops/op.h"
#include "ops/reference/images.h"
#include "ops/shared/resize.h"

namespace pumice::engine {
namespace {

using glsl::upsample2d::UPSAMPLE;

void upsample2d(Graph& graph, Args args) {
  constexpr const char* kOp = "upsample2d";
  Resize r = resize(args, kOp);
  const int64_t code = args.integer(4);
  check(code >= 0 && code <= 2, "%s: mode %" PRId64 " is not in 0..2", kOp, code);
  const auto mode = static_cast<UPSAMPLE>(code);
  r.nearest = mode == UPSAMPLE::nearest;
  r.aligned = mode == UPSAMPLE::bilinear_aligned;
  const DType dtype = r.x.dtype();
  check(r.nearest || is_float(dtype), "%s: between elements of %s", kOp, name(dtype));
  graph.dispatch({r.out}, {r.x}, [=](Launch& launch) {
    glsl::upsample2d::Params params{};
    if (!put_sizes(params, r, launch)) return;
    launch.params(params);
    launch.spec.push_back(static_cast<uint32_t>(mode));
    launch.outer = 2;
    launch.shader = &glsl::upsample2d::variant(glsl::upsample2d::dtype(dtype));
  });
}

}  // namespace

std::span<const Op> upsample2d_ops() {
  static constexpr Op kOps[] = {
      {{"upsample2d", 1, "Tensor x, sizes size, float? scale_h, float? scale_w, int mode -> Tensor"},
       upsample2d,
       glsl::upsample2d::axes,
       {"x=T[1,3,5,6] size=[9,11] mode=0|1|2 -> T[1,3,9,11]; "
        "x=T[3,7,6] size=[4,12] scale_h=0.6 scale_w=2 mode=0|1 -> T[3,4,12]; "
        "x=u8[2,5,6] size=[10,3] mode=0 -> u8[2,10,3]",
        "x=f16[1,64,56,56] size=[112,112] mode=1 -> f16[1,64,112,112]", reference::upsample2d}}};
  return kOps;
}

}  // namespace pumice::engine
