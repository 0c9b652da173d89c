// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/convolution.h"

#include <algorithm>
#include <array>
#include <cinttypes>

#include "base/divide.h"
#include "glsl/include/math/activation.glslh"
#include "ops/conv/channels_last.h"
#include "ops/conv/channels_last_product.h"
#include "ops/conv/depthwise_mean.h"
#include "ops/conv/expanded_depthwise.h"
#include "ops/conv/launch.h"
#include "ops/linear/epilogue.h"
#include "ops/shared/shape.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

// Sums of products of differences of bytes stay within 32 bits up to here.
constexpr int64_t kIntegerColumns = (int64_t{1} << 31) / (255 * 255);

// Whether each value fits a binding as kernels that take no blocks would have it, as far as is known now.
bool is_small(const Convolution& c, const Features& features) {
  const ConvShape shape = c.facts().shape();
  // Rows of the packed weight are whole panels of 16, and their groups whole tiles of 8.
  const int64_t packed =
                    ceil_div(shape.channels, 16) * 16 * ceil_div(shape.k_groups, 8) * 32 * group_words(c.x.dtype()),
                x = c.x.numel() * device_bytes(c.x.dtype()), out = c.out.numel() * device_bytes(c.out.dtype());
  return static_cast<uint64_t>(std::max({packed, x, out})) <= features.max_storage_bytes;
}

}  // namespace

bool Convolution::is_pointwise() const {
  const Patches& p = patches;
  return p.kernel == std::array<int64_t, 2>{1, 1} && p.stride == p.kernel && p.pads == std::array<int64_t, 4>{};
}

Shape Convolution::out_shape() const {
  const int64_t want = groups * (weight.dim(1) / (patches.kernel[0] * patches.kernel[1]));
  check(x.dim(1) == want, "%s: x has %" PRId64 " channels, not %" PRId64, op, x.dim(1), want);
  return {x.dim(0), weight.dim(0), patches.count(0, x.dim(2), op), patches.count(1, x.dim(3), op)};
}

ConvFacts Convolution::facts() const {
  return {.x = x.dtype(),
          .out = out.dtype(),
          .quantized = bool(scale),
          .has_zero = bool(zero),
          .groups = groups,
          .channels = weight.dim(0),
          .in_channels = x.dim(1),
          .patches = patches,
          .textures = x.storage() == StorageType::texture3d};
}

void convolution(Graph& graph, const Convolution& given) {
  const char* op = given.op;
  const Tensor x = given.x, weight = given.weight, scale = given.scale, zero = given.zero;
  check(x.rank() == 4, "%s: x has rank %u, not 4", op, x.rank());
  check(weight.is_constant() && weight.rank() == 2 && weight.numel() > 0,
        "%s: the weight must be a constant matrix that is not empty", op);
  if (weight.dtype() == DType::i8) {
    const Shape want = {weight.dim(0), 1};
    check(scale && scale.is_constant() && scale.dtype() == DType::f32 && scale.shape() == want,
          "%s: the scales of the weight must be a constant f32 [%" PRId64 ", 1]", op, want[0]);
    check(!zero || (zero.is_constant() && zero.dtype() == DType::i8 && zero.shape() == want),
          "%s: the zero points of the weight must be a constant i8 [%" PRId64 ", 1]", op, want[0]);
  } else {
    check(weight.dtype() == x.dtype() && is_float(x.dtype()) && !scale, "%s: x is %s, the weight %s", op,
          name(x.dtype()), name(weight.dtype()));
  }
  const int64_t channels = weight.dim(0), k = weight.dim(1);
  const auto [height, width] = given.patches.kernel;
  const bool integers = !is_float(x.dtype());
  check(given.groups >= 1 && channels % given.groups == 0, "%s: %" PRId64 " output channels in %" PRId64 " groups", op,
        channels, given.groups);
  check(k % (height * width) == 0, "%s: the weight has %" PRId64 " columns for a kernel of %" PRId64 " x %" PRId64, op,
        k, height, width);
  check_epilogue(op, DType::f32, {.bias = given.bias, .residual = {}, .act = given.act});
  check(!given.bias || given.bias.dim(0) == channels, "%s: the bias does not have %" PRId64 " elements", op, channels);
  check(!integers || k <= kIntegerColumns, "%s: sums of %" PRId64 " products of integers; 32 bits hold %" PRId64, op, k,
        kIntegerColumns);
  Convolution known = given;
  if (zero && graph.is_zero(zero)) known.zero = {};
  if (known.act == ACT_RELU && is_byte(known.out.dtype())) {
    known.requantize = above_zero(known.requantize);
    known.act = ACT_NONE;
  }
  take_textures(graph, known.x, known.out);
  if (is_small(known, graph.features()) && takes_matrices(known, graph.features()))
    return convolution_by_matrices(graph, known);
  if (try_expanded_depthwise(graph, known)) return;
  const ConvLaunch c(graph, known);
  const auto write = [c, &graph] {
    graph.dispatch({c.out}, c.reads(), [c](Launch& launch) {
      c.out.resize(c.out_shape());
      if (c.out.numel() == 0) return;
      u32(c.x.numel());
      u32(c.out.numel());
      launch_convolution(launch, c);
    });
  };
  if (!defer_for_mean(graph, c, write)) write();
}

}  // namespace pumice::engine
