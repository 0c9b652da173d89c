// SPDX-License-Identifier: Apache-2.0
// Pooling over the last two dimensions: max_pool2d, avg_pool2d, adaptive_avg_pool2d. `pads`: above, left, below, right.
//
// Error of means: |err| <= u |y| + 2^-24 * (elements of the window + 2) * mean|x|.
#include "ops/op.h"
#include "ops/reference/images.h"
#include "ops/shared/pooling.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void max_pool2d(Graph& graph, Args args) {
  constexpr const char* kOp = "max_pool2d";
  pooling(graph, {.op = kOp,
                  .x = args.tensor(0),
                  .out = args.out(),
                  .pool = glsl::pool2d::POOL::max,
                  .patches = patches(args, 1, kOp),
                  .ceil = args.boolean(5)});
}

const char* of_floats(const Args& args, const char* op) {
  check(is_float(args.tensor(0).dtype()), "%s: x is %s, not f32 or f16", op, name(args.tensor(0).dtype()));
  return op;
}

void avg_pool2d(Graph& graph, Args args) {
  pooling(graph, mean_pooling(args, of_floats(args, "avg_pool2d")));
}
void adaptive_avg_pool2d(Graph& graph, Args args) {
  pooling(graph, adaptive_pooling(args, of_floats(args, "adaptive_avg_pool2d")));
}

// The first dtypes of the shader's axis.
static_assert(glsl::pool2d::kDTYPE[1] == "f16" && glsl::pool2d::kDTYPE[2] == "i8");
constexpr Axis kFloats[] = {{"DTYPE", std::span(glsl::pool2d::kDTYPE).first(2)}};

}  // namespace

std::span<const Op> pool2d_ops() {
  static constexpr Op kOps[] = {
      {{"max_pool2d", 1, "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode -> Tensor"},
       max_pool2d,
       glsl::pool2d::axes,
       {"x=T[2,3,9,8] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> T[2,3,5,4]; "
        "x=i8[1,2,6,6] kernel=[2,2] stride=[2,2] pads=[0,0,0,0] dilation=[1,1] ceil_mode=0 -> i8[1,2,3,3]; "
        "x=T[2,9,8]{special} kernel=[3,2] stride=[2,1] pads=[0,1,0,1] dilation=[2,3] ceil_mode=1 -> T[2,3,7]",
        "x=f16[8,64,112,112] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> "
        "f16[8,64,56,56]",
        reference::max_pool2d}},
      {{"avg_pool2d", 1,
        "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode, bool count_padding, int? "
        "divisor "
        "-> Tensor"},
       avg_pool2d,
       kFloats,
       {"x=T[2,3,9,8] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 "
        "-> T[2,3,5,4]; "
        "x=T[2,9,8] kernel=[3,2] stride=[2,3] pads=[1,0,1,0] dilation=[1,1] ceil_mode=1 count_padding=0|1 -> T[2,5,3]; "
        "x=T[2,9,8] kernel=[3,2] stride=[2,2] pads=[0,0,0,0] dilation=[1,1] ceil_mode=0 count_padding=0 divisor=4 -> "
        "T[2,4,4]",
        "", reference::avg_pool2d}},
      {{"adaptive_avg_pool2d", 1, "Tensor x, sizes size -> Tensor"},
       adaptive_avg_pool2d,
       kFloats,
       {"x=T[2,3,9,8] size=[2,3] -> T[2,3,2,3]", "", reference::adaptive_avg_pool2d}},
  };
  return kOps;
}

}  // namespace pumice::engine
