// SPDX-License-Identifier: Apache-2.0
// Means of 8-bit integers of a constant scale and zero point, requantized: q8ta_avg_pool, q8ta_adaptive_avg_pool.
// Sums are exact; only a quotient very close to a tie may round to the other integer.
#include "ops/conv/image_pooling.h"
#include "ops/op.h"
#include "ops/quant/requantize.h"
#include "ops/reference/images.h"

namespace pumice::engine {
namespace {

void q8ta_avg_pool(Graph& graph, Args args) {
  Pooling p = mean_pooling(args, "q8ta_avg_pool");
  put_numbers(p.numbers, args, 8, p.op);
  image_pooling(graph, p);
}
void q8ta_adaptive_avg_pool(Graph& graph, Args args) {
  Pooling p = adaptive_pooling(args, "q8ta_adaptive_avg_pool");
  put_numbers(p.numbers, args, 2, p.op);
  image_pooling(graph, p);
}

// The dtypes of bytes of the shader's axis.
static_assert(glsl::pool::kDTYPE[2] == "i8" && glsl::pool::kDTYPE[3] == "u8");
constexpr Axis kBytes[] = {{"DTYPE", std::span(glsl::pool::kDTYPE).subspan(2, 2)}};

}  // namespace

std::span<const Op> q8ta_pool_ops() {
  static constexpr Op kOps[] = {
      {{"q8ta_avg_pool", 1,
        "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode, bool count_padding, int? "
        "divisor, "
        "float x_scale, int x_zero, float out_scale, int out_zero, int qmin, int qmax -> Tensor"},
       q8ta_avg_pool,
       kBytes,
       {"x=i8[2,3,9,8] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 count_padding=0 "
        "x_scale=0.03125 x_zero=3 out_scale=0.0625 out_zero=1 qmin=-128 qmax=127 -> i8[2,3,5,4]; "
        "x=u8[3,9,8] kernel=[2,3] stride=[1,2] pads=[1,1,0,0] dilation=[1,1] ceil_mode=1 count_padding=1 "
        "x_scale=0.037 x_zero=90 out_scale=0.029 out_zero=100 qmin=0 qmax=255 -> u8[3,9,4]; "
        "x=u8[2,3,14,13] kernel=[7,6] stride=[4,5] pads=[2,1,0,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 "
        "x_scale=0.037 x_zero=90 out_scale=0.029 out_zero=100 qmin=0 qmax=255 -> u8[2,3,3,2]; "
        "x=i8[2,3,6,8] kernel=[3,3] stride=[1,1] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 "
        "x_scale=0.03125 x_zero=3 out_scale=0.0625 out_zero=1 qmin=-128 qmax=127 -> i8[2,3,6,8]",
        "", reference::q8ta_avg_pool}},
      {{"q8ta_adaptive_avg_pool", 1,
        "Tensor x, sizes size, float x_scale, int x_zero, float out_scale, int out_zero, int qmin, int qmax -> Tensor"},
       q8ta_adaptive_avg_pool,
       kBytes,
       {"x=i8[2,3,9,8] size=[2,3] x_scale=0.03125 x_zero=3 out_scale=0.0625 out_zero=1 qmin=-128 qmax=127 -> "
        "i8[2,3,2,3]; "
        "x=u8[3,5,7,7] size=[1,1] x_scale=0.037 x_zero=90 out_scale=0.029 out_zero=100 qmin=0 qmax=255 -> u8[3,5,1,1]",
        "", reference::q8ta_adaptive_avg_pool}},
  };
  return kOps;
}

}  // namespace pumice::engine
