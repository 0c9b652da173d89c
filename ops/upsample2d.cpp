// SPDX-License-Identifier: Apache-2.0
// Resizes the last two dimensions to `size`, as PyTorch's upsample_nearest2d (mode 0), upsample_bilinear2d (1) and that
// with align_corners (2). `scale_h`, `scale_w`: output elements for each of the input, where they are not the quotient
// of the sizes.
//
// Error of bilinear: |err| <= u |y| + 2^-22 * (size + 8) * (the largest of the four elements): places are fp32.
#include "glsl/upsample2d.h"

#include <cinttypes>
#include <cmath>

#include "ops/common/shape.h"
#include "ops/op.h"

namespace pumice {
namespace {

using glsl::upsample2d::UPSAMPLE;

float step(UPSAMPLE mode, int64_t in, int64_t out, double scale) {
  if (mode == UPSAMPLE::bilinear_aligned) return out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0;
  return scale > 0 ? static_cast<float>(1.0 / scale) : static_cast<float>(in) / static_cast<float>(out);
}

void upsample2d(Graph& graph, Args args) {
  constexpr const char* kOp = "upsample2d";
  const Tensor x = args.tensor(0), out = args.out();
  const std::vector<SymInt> size = args.sizes(1);
  const double scale_h = args.has(2) ? args.real(2) : 0, scale_w = args.has(3) ? args.real(3) : 0;
  const int64_t code = args.integer(4);
  check(x.rank() >= 2 && size.size() == 2, "%s: rank %u to %zu sizes", kOp, x.rank(), size.size());
  check(code >= 0 && code <= 2, "%s: mode %" PRId64 " is not in 0..2", kOp, code);
  const auto mode = static_cast<UPSAMPLE>(code);
  check(x.dtype() == out.dtype(), "%s: x is %s, the output %s", kOp, name(x.dtype()), name(out.dtype()));
  check(mode == UPSAMPLE::nearest || is_float(x.dtype()), "%s: between elements of %s", kOp, name(x.dtype()));
  for (const double scale : {scale_h, scale_w}) {
    check(scale == 0 || (scale >= 0x1p-20 && scale <= 0x1p20), "%s: the scale %g", kOp, scale);
  }
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    Shape shape = x.shape();
    const size_t rank = shape.size();
    glsl::upsample2d::Params params{};
    params.in_h = u32(shape[rank - 2]);
    params.in_w = u32(shape[rank - 1]);
    shape[rank - 2] = launch.size(size[0]);
    shape[rank - 1] = launch.size(size[1]);
    check(shape[rank - 2] >= 0 && shape[rank - 1] >= 0, "%s: a negative size", kOp);
    out.resize(shape);
    if (out.numel() == 0) return;
    check(x.numel() != 0, "%s: an empty image", kOp);
    u32(x.numel());
    params.count = u32(out.numel());
    params.out_h = u32(shape[rank - 2]);
    params.out_w = u32(shape[rank - 1]);
    params.scale_h = step(mode, params.in_h, params.out_h, scale_h);
    params.scale_w = step(mode, params.in_w, params.out_w, scale_w);
    launch.params(params);
    launch.over(quads(out));
    launch.spec.push_back(static_cast<uint32_t>(mode));
    launch.shader = &glsl::upsample2d::variant(glsl::upsample2d::dtype(x.dtype()));
  });
}

}  // namespace

std::span<const Op> upsample2d_ops() {
  static constexpr Op kOps[] = {
      {{"upsample2d", 1, "Tensor x, sizes size, float? scale_h, float? scale_w, int mode -> Tensor"},
       upsample2d,
       glsl::upsample2d::axes}};
  return kOps;
}

}  // namespace pumice
