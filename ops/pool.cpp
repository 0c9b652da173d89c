// SPDX-License-Identifier: Apache-2.0
// Pooling over the last one, two or three dimensions: max_pool, max_pool_with_places (where in its plane each is, the
// first of equal ones, as max_pool2d_with_indices), avg_pool, adaptive_avg_pool. `pads`: those in front of the elements
// of each dimension, then those after them.
//
// Error of means: |err| <= u |y| + 2^-24 * (elements of the window + 2) * mean|x|.
#include "ops/conv/image_pooling.h"
#include "ops/op.h"
#include "ops/reference/images.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

using glsl::pool::POOL;

void max_pool(Graph& graph, Args args) {
  image_pooling(graph, window_pooling(args, POOL::max, "max_pool"));
}

void max_pool_with_places(Graph& graph, Args args) {
  constexpr const char* kOp = "max_pool_with_places";
  Pooling p = window_pooling(args, POOL::max_with_places, kOp);
  p.places = args.out(1);
  check(p.places.dtype() == DType::i64 || p.places.dtype() == DType::i32, "%s: the places are %s", kOp,
        name(p.places.dtype()));
  image_pooling(graph, p);
}

const char* of_floats(const Args& args, const char* op) {
  check(is_float(args.tensor(0).dtype()), "%s: x is %s, not f32 or f16", op, name(args.tensor(0).dtype()));
  return op;
}

void avg_pool(Graph& graph, Args args) {
  image_pooling(graph, mean_pooling(args, of_floats(args, "avg_pool")));
}
void adaptive_avg_pool(Graph& graph, Args args) {
  image_pooling(graph, adaptive_pooling(args, of_floats(args, "adaptive_avg_pool")));
}

// The first dtypes of the shader's axis.
static_assert(glsl::pool::kDTYPE[1] == "f16" && glsl::pool::kDTYPE[2] == "i8");
constexpr Axis kFloats[] = {{"DTYPE", std::span(glsl::pool::kDTYPE).first(2)}};

}  // namespace

std::span<const Op> pool_ops() {
  static constexpr Op kOps[] = {
      {{"max_pool", 1, "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode -> Tensor"},
       max_pool,
       glsl::pool::axes,
       {"x=T[2,3,9,8] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> T[2,3,5,4]; "
        "x=i8[1,2,6,6] kernel=[2,2] stride=[2,2] pads=[0,0,0,0] dilation=[1,1] ceil_mode=0 -> i8[1,2,3,3]; "
        "x=T[2,9,8]{special} kernel=[3,2] stride=[2,1] pads=[0,1,0,1] dilation=[2,3] ceil_mode=1 -> T[2,3,7]; "
        "x=T[2,5,6,7] kernel=[2,3,2] stride=[2,1,3] pads=[1,0,0,0,1,1] dilation=[1,2,1] ceil_mode=0 -> T[2,3,3,3]; "
        "x=T[3,9] kernel=[2] stride=[2] pads=[1,1] dilation=[1] ceil_mode=0 -> T[3,5]; "
        "x=T[2,3,9,16] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> T[2,3,5,8]; "
        "x=i8[2,5,7,8] kernel=[3,2] stride=[1,1] pads=[1,0,1,1] dilation=[1,1] ceil_mode=0 -> i8[2,5,7,8]",
        "x=f16[8,64,112,112] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> "
        "f16[8,64,56,56]",
        reference::max_pool}},
      {{"max_pool_with_places", 1,
        "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode -> Tensor, Tensor"},
       max_pool_with_places,
       glsl::pool::axes,
       {"x=T[2,3,9,8]|T[2,3,9,8]{special} kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> "
        "T[2,3,5,4] i64[2,3,5,4]; "
        "x=i64[2,4,9,8]{-2..2} kernel=[2,3,2] stride=[1,2,1] pads=[1,0,1,0,1,0] dilation=[2,1,2] ceil_mode=1 -> "
        "i64[2,3,5,7] i32[2,3,5,7]; "
        "x=i32[3,9]{-2..2} kernel=[2] stride=[2] pads=[1,1] dilation=[1] ceil_mode=0 -> i32[3,5] i64[3,5]; "
        "x=T[2,3,9,16]|T[2,3,9,16]{special} kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> "
        "T[2,3,5,8] i64[2,3,5,8]",
        "x=f16[8,64,112,112] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 -> "
        "f16[8,64,56,56] i64[8,64,56,56]",
        reference::max_pool_with_places}},
      {{"avg_pool", 1,
        "Tensor x, ints kernel, ints stride, ints pads, ints dilation, bool ceil_mode, bool count_padding, int? "
        "divisor "
        "-> Tensor"},
       avg_pool,
       kFloats,
       {"x=T[2,3,9,8] kernel=[3,3] stride=[2,2] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 "
        "-> T[2,3,5,4]; "
        "x=T[2,9,8] kernel=[3,2] stride=[2,3] pads=[1,0,1,0] dilation=[1,1] ceil_mode=1 count_padding=0|1 -> T[2,5,3]; "
        "x=T[2,9,8] kernel=[3,2] stride=[2,2] pads=[0,0,0,0] dilation=[1,1] ceil_mode=0 count_padding=0 divisor=4 -> "
        "T[2,4,4]; "
        "x=T[2,5,6,7] kernel=[2,3,2] stride=[2,1,3] pads=[1,1,0,1,1,1] dilation=[1,1,1] ceil_mode=0 count_padding=0|1 "
        "-> T[2,3,6,3]; "
        "x=T[3,9] kernel=[2] stride=[2] pads=[1,1] dilation=[1] ceil_mode=0 count_padding=1 -> T[3,5]; "
        "x=T[2,3,5,8] kernel=[3,3] stride=[1,1] pads=[1,1,1,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 -> "
        "T[2,3,5,8]; "
        "x=T[2,3,14,13] kernel=[7,6] stride=[4,5] pads=[2,1,0,1] dilation=[1,1] ceil_mode=0 count_padding=0|1 -> "
        "T[2,3,3,2]",
        "x=f16[8,64,16,28,28] kernel=[3,3,3] stride=[1,1,1] pads=[1,1,1,1,1,1] dilation=[1,1,1] ceil_mode=0 "
        "count_padding=1 -> f16[8,64,16,28,28]",
        reference::avg_pool}},
      {{"adaptive_avg_pool", 1, "Tensor x, sizes size -> Tensor"},
       adaptive_avg_pool,
       kFloats,
       {"x=T[2,3,9,8] size=[2,3] -> T[2,3,2,3]; x=T[3,5,9,8] size=[2,3,9] -> T[3,2,3,9]; x=T[3,9] size=[4] -> T[3,4]; "
        "x=T[2,3,13,17] size=[2,3] -> T[2,3,2,3]",
        "", reference::adaptive_avg_pool}},
  };
  return kOps;
}

}  // namespace pumice::engine
