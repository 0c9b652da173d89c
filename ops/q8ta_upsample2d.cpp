// SPDX-License-Identifier: Apache-2.0
// Bilinear resizing of 8-bit integers of a constant scale and zero point, requantized; arguments as of
// upsample2d. `channels_last`: whether the image is channels-last in PyTorch, which decides the order of its sums. The
// integers are those of eager PyTorch on processors with fused multiply-adds (x86 with AVX2).
#include "glsl/q8ta_upsample2d.h"

#include "ops/op.h"
#include "ops/quant/requantize.h"
#include "ops/reference/images.h"
#include "ops/shared/resize.h"

namespace pumice::engine {
namespace {

using glsl::q8ta_upsample2d::ORDER;

void q8ta_upsample2d(Graph& graph, Args args) {
  constexpr const char* kOp = "q8ta_upsample2d";
  Resize r = resize(args, kOp);
  r.aligned = args.boolean(4);
  const bool channels_last = args.boolean(5);
  check(r.x.rank() >= 3, "%s: x has rank %u, not 3 or more", kOp, r.x.rank());
  glsl::q8ta_upsample2d::Params numbers{};
  put_numbers(numbers, args, 6, kOp);
  graph.dispatch({r.out}, {r.x}, [=](Launch& launch) {
    glsl::q8ta_upsample2d::Params params = numbers;
    if (!put_sizes(params, r, launch)) return;
    params.channels = u32(r.x.shape()[r.x.rank() - 3]);
    // The rule by which PyTorch takes its kernel that vectorizes over channels.
    const bool corners = (channels_last && params.channels > 3) || uint64_t{params.out_h} + params.out_w <= 128;
    launch.params(params);
    launch.spec.push_back(static_cast<uint32_t>(corners ? ORDER::corners : ORDER::rows));
    launch.spec.push_back(r.aligned);
    launch.shader = &glsl::q8ta_upsample2d::variant(glsl::q8ta_upsample2d::dtype(r.x.dtype()));
  });
}

}  // namespace

std::span<const Op> q8ta_upsample2d_ops() {
  static constexpr Op kOps[] = {
      {{"q8ta_upsample2d", 1,
        "Tensor x, sizes size, float? scale_h, float? scale_w, bool aligned, bool channels_last, float x_scale, "
        "int x_zero, float out_scale, int out_zero, int qmin, int qmax -> Tensor"},
       q8ta_upsample2d,
       glsl::q8ta_upsample2d::axes,
       {"x=i8[1,3,5,6] size=[9,11] aligned=0|1 channels_last=0 x_scale=0.03125 x_zero=3 out_scale=0.0625 "
        "out_zero=1 qmin=-128 qmax=127 -> i8[1,3,9,11]; "
        "x=u8[9,5,6] size=[70,71] aligned=0|1 channels_last=0|1 x_scale=0.037 x_zero=90 out_scale=0.029 out_zero=100 "
        "qmin=0 qmax=255 -> u8[9,70,71]",
        "", reference::q8ta_upsample2d}}};
  return kOps;
}

}  // namespace pumice::engine
