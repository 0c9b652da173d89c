// SPDX-License-Identifier: Apache-2.0
// A scale and a zero point for each block of x, from its smallest and largest element, bit for bit what PyTorch's CPU
// operators give (torchao.choose_qparams_affine, quantized_decomposed.choose_qparams*). `mapping` and `steps`:
// QPARAMS_* and STEPS_* of glsl/include/core/modes.glslh. Results have a dimension for each of x: the number of blocks
// along it.
#include "ops/quant/choose_qparams.h"

#include <cinttypes>

#include "glsl/choose_qparams_range.h"
#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/reference/integers.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "choose_qparams";

void choose_qparams(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), scale = args.out(0), zero = args.out(1);
  const std::vector<int64_t> block = args.ints(1);
  const int64_t mapping = args.integer(2), low = args.integer(3), high = args.integer(4), steps = args.integer(6);
  const auto eps = static_cast<float>(args.real(5));
  check(zero.dtype() != DType::boolean, "%s: the zero points are bool", kOp);
  check(mapping >= 0 && mapping <= QPARAMS_TENSOR, "%s: mapping %" PRId64 " is not in 0..%u", kOp, mapping,
        QPARAMS_TENSOR);
  check(steps >= 0 && steps <= STEPS_F16_THEN_F32 && (steps == STEPS_F32 || x.dtype() == DType::f16),
        "%s: steps %" PRId64 " with an input of %s", kOp, steps, name(x.dtype()));
  check(low < high && low >= INT32_MIN && high <= INT32_MAX, "%s: %" PRId64 "..%" PRId64 " is no range of integers",
        kOp, low, high);
  choose_qparams(graph, scale, zero, x, block,
                 {static_cast<uint32_t>(mapping), low, high, eps, static_cast<uint32_t>(steps)});
}

constexpr Axis kAxes[] = {{"DTYPE", glsl::choose_qparams_range::kDTYPE},
                          {"X_STORAGE", glsl::choose_qparams_range::kX_STORAGE}};

}  // namespace

std::span<const Op> choose_qparams_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1, "Tensor x, ints block, int mapping, int qmin, int qmax, float eps, int steps -> Tensor, Tensor"},
       choose_qparams,
       kAxes,
       {"x=f32[5,37] block=[1,-1] mapping=0|1 qmin=-128 qmax=127 eps=0.000001 steps=0 "
        "storage=buffer|texture3d -> f32[5,1] i32[5,1]; "
        "x=f32[4,40]{0.5..3} block=[2,8] mapping=0|1|2|3|4|5 qmin=-8 qmax=7 eps=0.000001 steps=0 -> f32[2,5] i32[2,5]; "
        "x=f16[5,37] block=[-1,-1] mapping=0|1|2 qmin=0 qmax=255 eps=0.00001 steps=1 -> f16[1,1] u8[1,1]; "
        "x=T[5,37] block=[1,-1] mapping=0|5 qmin=0 qmax=255 eps=0.00001 steps=0 -> T[5,1] f32[5,1]; "
        "x=f32[5,37]{special} block=[1,-1] mapping=0|5 qmin=-128 qmax=127 eps=0.000001 steps=0 -> f32[5,1] i8[5,1]",
        "", reference::choose_qparams}}};
  return kOps;
}

}  // namespace pumice::engine
