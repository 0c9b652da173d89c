// SPDX-License-Identifier: Apache-2.0
// out = clamp(round(x / scale) + zero, qmin, qmax), a scale and a zero point (number or tensor) for each block of x.
// Bit for bit what PyTorch's CPU operators give (torchao.quantize_affine, quantized_decomposed.quantize_*): rounding of
// the steps in `steps` (STEPS_* of glsl/include/core/modes.glslh), `round_last` for those that add the zero point
// first. STEPS_F64: PyTorch's scales are fp64 tensors that hold fp32 numbers.
#include "glsl/quantize.h"

#include <algorithm>
#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "glsl/quantize_f64.h"
#include "ops/conv/quantized_image.h"
#include "ops/op.h"
#include "ops/quant/blocks.h"
#include "ops/reference/integers.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "quantize";

// The kernel in fp64: scales are f32 tensors, zero points integers, or both numbers.
void quantize_f64(Graph& graph, Tensor out, Tensor x, const Parameter& scale, const Parameter& zero,
                  const std::vector<int64_t>& block, int64_t low, int64_t high) {
  check(scale.stored == STORED_F32 && (!zero.tensor || !is_float(zero.tensor.dtype())),
        "%s: in fp64 only with f32 scales and integer zero points", kOp);
  const bool texture = x.storage() == StorageType::texture3d;
  const Shader& shader =
      glsl::quantize_f64::variant(glsl::quantize_f64::in(x.dtype()), glsl::quantize_f64::out(out.dtype()),
                                  static_cast<glsl::quantize_f64::STORAGE>(texture));
  graph.dispatch({out}, {x, scale.tensor, zero.tensor ? zero.tensor : scale.tensor}, [=, &shader](Launch& launch) {
    out.resize(x.shape());
    const QuantBlocks b = quant_blocks(x.shape(), block, kOp);
    check_count(scale, b, kOp, "scales");
    check_count(zero, b, kOp, "zero points");
    if (out.numel() == 0) return;
    glsl::quantize_f64::Params params{};
    over_blocks(launch, params, b, out, scale, zero, false);
    if (texture) over_texels(launch, params, out);
    params.low = static_cast<int32_t>(low);
    params.high = static_cast<int32_t>(high);
    launch.params(params);
    launch.shader = &shader;
  });
}

void quantize(Graph& graph, Args args) {
  Tensor x = args.tensor(0), out = args.out();
  Parameter scale = parameter(args, 1, kOp, false);
  const Parameter zero = parameter(args, 2, kOp, true);
  const std::vector<int64_t> block = args.ints(3);
  const int64_t low = args.integer(4), high = args.integer(5), steps = args.integer(6);
  const bool last = args.boolean(7);
  check(out.dtype() != DType::boolean, "%s: the output is bool", kOp);
  check(low <= high && low >= INT32_MIN && high <= INT32_MAX, "%s: %" PRId64 "..%" PRId64 " is no range of integers",
        kOp, low, high);
  const bool texture = take_textures(graph, x, out);
  if (steps == STEPS_F64 && last) return quantize_f64(graph, out, x, scale, zero, block, low, high);
  check(steps == STEPS_F32 || (steps == STEPS_F16 && x.dtype() == DType::f16),
        "%s: steps %" PRId64 " with an input of %s", kOp, steps, name(x.dtype()));
  const Shader& shader = glsl::quantize::variant(glsl::quantize::in(x.dtype()), glsl::quantize::out(out.dtype()),
                                                 static_cast<glsl::quantize::STORAGE>(texture));
  // PyTorch computes the reciprocal of a Python number in fp64.
  if (!scale.tensor) scale.number = static_cast<float>(1.0 / args.real(1));
  const auto bind = [&](const Parameter& parameter) {
    return parameter.tensor ? parameter.tensor : texture ? Tensor() : x;
  };
  const auto write = [=, &graph, &shader, reads = std::vector<Tensor>{x, bind(scale), bind(zero)}] {
    graph.dispatch({out}, reads, [=, &shader](Launch& launch) {
      out.resize(x.shape());
      const QuantBlocks b = quant_blocks(x.shape(), block, kOp);
      check_count(scale, b, kOp, "scales");
      check_count(zero, b, kOp, "zero points");
      if (out.numel() == 0) return;
      glsl::quantize::Params params{};
      over_blocks(launch, params, b, out, scale, zero, !texture);
      if (texture) over_texels(launch, params, out);
      params.low = static_cast<float>(low);
      params.high = static_cast<float>(high);
      launch.params(params);
      launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(steps), last, params.block_vec4s % 2 == 0});
      launch.shader = &shader;
    });
  };
  const bool of_tensor = !scale.tensor && !zero.tensor && std::ranges::all_of(block, [](int64_t b) { return b == -1; });
  const QuantizedImage image{.x = x,
                             .inverse = scale.number,
                             .zero = zero.number,
                             .low = static_cast<float>(low),
                             .high = static_cast<float>(high),
                             .steps = static_cast<uint32_t>(steps)};
  const bool plain = of_tensor && !last && !texture && same_shape(graph, x, out);
  if (!plain || !defer_quantized_image(graph, out, image, write)) write();
}

}  // namespace

std::span<const Op> quantize_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1,
        "Tensor x, operand scale, operand? zero, ints block, int qmin, int qmax, int steps, bool round_last -> Tensor"},
       quantize,
       glsl::quantize::axes,
       {"x=f32[5,37]{-3..3}|f32[5,37]{special} scale=f32[5]{0.01..0.05} zero=i8[5]{-9..9} block=[1,-1] qmin=-128 "
        "qmax=127 "
        "steps=0 round_last=0 storage=buffer|texture3d -> i8[5,37]; "
        "x=f16[5,37]{-3..3} scale=f16[5]{0.01..0.05} zero=i8[5]{-9..9} block=[1,-1] qmin=-128 qmax=127 steps=1 "
        "round_last=0 storage=buffer|texture3d -> i8[5,37]; "
        "x=f32[4,12]{-3..3} scale=f32[4,3]{0.01..0.05} zero=i32[4,3]{-9..9} block=[1,4] qmin=-128 qmax=127 steps=0|3 "
        "round_last=1 -> i8[4,12]; "
        "x=T[3,37]{-3..3} scale=f32[3]{0.01..0.05} zero=i32[3]{0..9} block=[1,-1] qmin=0 qmax=99 steps=3 round_last=1 "
        "-> u8[3,37]; "
        "x=T[3,37]{-3..3} scale=f32[3]{0.01..0.05} zero=i32[3]{-9..9} block=[1,-1] qmin=-99 qmax=99 steps=3 "
        "round_last=1 -> i8[3,37]; "
        "x=T[3,37]{-3..3} scale=f32[3]{0.01..0.05} zero=i32[3]{-9..9} block=[1,-1] qmin=-99 qmax=999 steps=3 "
        "round_last=1 -> i32[3,37]; "
        "x=f32[3,37]{-3..3} scale=0.037 zero=100 block=[-1,-1] qmin=0 qmax=255 steps=0 round_last=0|1 -> u8[3,37]",
        "x=f32[1024,1024] scale=f32[1024]{0.01..0.05} zero=i8[1024]{-9..9} block=[1,-1] qmin=-128 qmax=127 steps=0 "
        "round_last=0 -> i8[1024,1024]",
        reference::quantize},
       "i64"}};
  return kOps;
}

}  // namespace pumice::engine
