// SPDX-License-Identifier: Apache-2.0
// out = (x - zero) * scale, a scale and a zero point (number or tensor) for each block of x, bit for bit what PyTorch's
// CPU operators give. `integers`: x - zero is computed in integers (quantized_decomposed), else in the output's
// dtype (torchao). `steps`: STEPS_* of glsl/include/core/modes.glslh.
#include "glsl/dequantize.h"

#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "ops/op.h"
#include "ops/quant/blocks.h"
#include "ops/reference/integers.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "dequantize";

void dequantize(Graph& graph, Args args) {
  Tensor x = args.tensor(0), out = args.out();
  const Parameter scale = parameter(args, 1, kOp, false), zero = parameter(args, 2, kOp, true);
  const std::vector<int64_t> block = args.ints(3);
  const int64_t steps = args.integer(4);
  const bool integers = args.boolean(5);
  check(x.dtype() != DType::boolean, "%s: x is bool", kOp);
  check(steps == STEPS_F32 || steps == STEPS_F16, "%s: steps %" PRId64, kOp, steps);
  check(!integers || !zero.tensor || !is_float(zero.tensor.dtype()), "%s: zero points are %s, not integers", kOp,
        name(zero.tensor ? zero.tensor.dtype() : DType::f32));
  const bool texture = take_textures(graph, x, out);
  const Shader& shader = glsl::dequantize::variant(glsl::dequantize::in(x.dtype()), glsl::dequantize::out(out.dtype()),
                                                   static_cast<glsl::dequantize::STORAGE>(texture));
  const auto bind = [&](const Parameter& parameter) {
    return parameter.tensor ? parameter.tensor : texture ? Tensor() : x;
  };
  graph.dispatch({out}, {x, bind(scale), bind(zero)}, [=, &shader](Launch& launch) {
    out.resize(x.shape());
    const QuantBlocks b = quant_blocks(x.shape(), block, kOp);
    check_count(scale, b, kOp, "scales");
    check_count(zero, b, kOp, "zero points");
    if (out.numel() == 0) return;
    glsl::dequantize::Params params{};
    over_blocks(launch, params, b, out, scale, zero, !texture);
    if (texture) over_texels(launch, params, out);
    launch.params(params);
    launch.writes_once = true;
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(steps), integers});
    launch.shader = &shader;
  });
}

}  // namespace

std::span<const Op> dequantize_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1, "Tensor x, operand scale, operand? zero, ints block, int steps, bool integers -> Tensor"},
       dequantize,
       glsl::dequantize::axes,
       {"x=i8[5,32] scale=f32[5]{0.01..0.1} zero=i8[5]{-5..5} block=[1,-1] steps=0 integers=0|1 "
        "storage=buffer|texture3d -> T[5,32]; "
        "x=i8[4,12] scale=f32[4,3]{0.01..0.1} zero=f32[4,3]{-5..5} block=[1,4] steps=0 integers=0 -> f32[4,12]; "
        "x=i8[5,32] scale=f16[5]{0.01..0.1} zero=i8[5] block=[1,-1] steps=1 integers=0|1 -> f16[5,32]; "
        "x=u8[3,37] scale=0.125 zero=7 block=[-1,-1] steps=0 integers=0 -> f32[3,37]",
        "x=i8[1024,1024] scale=f32[1024]{0.01..0.1} block=[1,-1] steps=0 integers=0 -> f16[1024,1024]",
        reference::dequantize},
       "i64"}};
  return kOps;
}

}  // namespace pumice::engine
