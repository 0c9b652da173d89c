// SPDX-License-Identifier: Apache-2.0
#include "ops/common/conv.h"

#include <cinttypes>

#include "glsl/conv2d_depthwise.h"
#include "glsl/conv2d_depthwise_int8.h"
#include "glsl/conv2d_direct.h"
#include "glsl/conv2d_direct_int8.h"
#include "glsl/conv2d_tiled.h"
#include "glsl/conv2d_tiled_int8.h"
#include "glsl/include/modes.glslh"
#include "ops/common/conv_matrix.h"
#include "ops/common/divide.h"
#include "ops/common/shape.h"

namespace pumice {
namespace {

// Sums of products of differences of bytes stay within 32 bits up to here.
constexpr int64_t kIntegerColumns = (int64_t{1} << 31) / (255 * 255);

// What is known when the graph is built.
struct Conv : Convolution {
  uint32_t channels, k;  // of all groups; of one
  bool integers, direct;
  PackedWeight packed = {};  // unless direct

  Conv(Graph& graph, const Convolution& c) : Convolution(c), channels(u32(weight.dim(0))), k(u32(weight.dim(1))) {
    integers = !is_float(x.dtype());
    direct = is_direct(groups, channels / groups);
    if (!direct) packed = pack_weight(graph, op, weight, scale, zero, weight.dim(1));
  }

  std::vector<Tensor> reads() const {
    std::vector<Tensor> reads = {x, direct ? weight : packed.weight, bias ? bias : x};
    if (scale && direct) reads.insert(reads.end(), {scale, zero ? zero : x});
    if (scale && !direct) reads.insert(reads.end(), {packed.scale, packed.zero ? packed.zero : packed.scale});
    return reads;
  }
};

template <class Params>
Params describe(Launch& launch, const Conv& c, bool whole_quads) {
  Params params{};
  params.batch = u32(c.x.dim(0));
  params.groups = u32(c.groups);
  params.in_channels = u32(c.x.dim(1) / c.groups);
  params.in_h = u32(c.x.dim(2));
  params.in_w = u32(c.x.dim(3));
  params.out_channels = c.channels / params.groups;
  params.out_h = u32(c.out.dim(2));
  params.out_w = u32(c.out.dim(3));
  put(params, c.patches);
  params.k = c.k;
  // The sizes that most kernels have: others are not worth a pipeline each.
  const auto known = [](int64_t size) { return size == 1 || size == 3 ? static_cast<uint32_t>(size) : 0u; };
  const bool has_zero = c.direct ? bool(c.zero) : bool(c.packed.zero);
  launch.spec.insert(launch.spec.end(),
                     {bool(c.bias), has_zero, whole_quads, static_cast<uint32_t>(c.act), known(c.patches.kernel[0]),
                      known(c.patches.kernel[1]), c.is_pointwise(), c.patches.transposed});
  launch.flops = 2ull * static_cast<uint64_t>(c.out.numel()) * c.k;
  return params;
}

// Of shaders that take integers.
template <class Params>
Params with_numbers(Params params, const Conv& c) {
  params.x_zero = static_cast<int32_t>(c.x_zero);
  params.x_scale = static_cast<float>(c.x_scale);
  put(params, c.again);
  return params;
}

void launch_direct(Launch& launch, const Conv& c) {
  launch.over(quads(c.out));
  const bool whole_quads = c.out.dim(3) % 4 == 0;
  if (c.integers) {
    using namespace glsl::conv2d_direct_int8;
    launch.params(with_numbers(describe<Params>(launch, c, whole_quads), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()));
  } else {
    using namespace glsl::conv2d_direct;
    launch.params(describe<Params>(launch, c, whole_quads));
    launch.shader = &variant(dtype(c.x.dtype()), c.scale ? WEIGHT::i8 : WEIGHT::same);
  }
}

template <class Params>
Params describe_depthwise(Launch& launch, const Conv& c, uint32_t columns) {
  const Patches& p = c.patches;
  const int64_t rows = ceil_div(c.out.dim(2), DEPTHWISE_ROWS);
  launch.over(static_cast<uint64_t>(c.out.dim(0) * c.out.dim(1) * rows * c.out.dim(3) / columns));
  const auto params = describe<Params>(launch, c, true);
  // All sizes, for the window to be in registers.
  launch.spec[5] = params.kernel_h;
  launch.spec[6] = params.kernel_w;
  launch.spec.insert(launch.spec.end(),
                     {u32(p.stride[0]), u32(p.stride[1]), u32(p.dilation[0]), u32(p.dilation[1]), columns});
  return params;
}

void launch_depthwise(Launch& launch, const Conv& c, uint32_t columns) {
  if (c.integers) {
    using namespace glsl::conv2d_depthwise_int8;
    launch.params(with_numbers(describe_depthwise<Params>(launch, c, columns), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()));
  } else {
    using namespace glsl::conv2d_depthwise;
    launch.params(describe_depthwise<Params>(launch, c, columns));
    launch.shader = &variant(dtype(c.x.dtype()));
  }
}

int64_t pixels(const Conv& c) {
  return c.out.dim(0) * c.out.dim(2) * c.out.dim(3);
}

template <class Params>
Params describe_tiles(Launch& launch, const Conv& c, const Tile& tile) {
  const int64_t of_group = c.channels / c.groups;
  // A group that begins inside of a strip has up to 15 rows of others in front.
  const int64_t rows = of_group % kStripRows == 0 ? of_group : of_group + kStripRows - 1;
  const int64_t row_blocks = ceil_div(rows, tile.bm);
  over_groups(launch, static_cast<uint64_t>(c.groups * row_blocks * ceil_div(pixels(c), tile.bn)), tile.parts());
  auto params = describe<Params>(launch, c, c.out.dim(2) * c.out.dim(3) % 4 == 0);
  launch.spec.insert(launch.spec.end(), {tile.bm, tile.bn, tile.tm, tile.tn});
  params.tiles = strip_tiles(c.k);
  params.row_blocks = static_cast<uint32_t>(row_blocks);
  return params;
}

void launch_tiled(Launch& launch, const Conv& c) {
  const Tile tile = pick_tile(c.groups, c.channels / c.groups, u32(pixels(c)), launch.features);
  if (c.integers) {
    using namespace glsl::conv2d_tiled_int8;
    launch.params(with_numbers(describe_tiles<Params>(launch, c, tile), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()));
  } else {
    using namespace glsl::conv2d_tiled;
    launch.params(describe_tiles<Params>(launch, c, tile));
    const WEIGHT weight = c.scale ? WEIGHT::q8 : c.x.dtype() == DType::f16 ? WEIGHT::f16 : WEIGHT::f32;
    launch.shader = &variant(dtype(c.x.dtype()), weight);
  }
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
          .patches = patches};
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
  check_epilogue(op, integers ? DType::f32 : x.dtype(), {.bias = given.bias, .residual = {}, .act = given.act});
  check(!given.bias || given.bias.dim(0) == channels, "%s: the bias does not have %" PRId64 " elements", op, channels);
  check(!integers || k <= kIntegerColumns, "%s: sums of %" PRId64 " products of integers; 32 bits hold %" PRId64, op, k,
        kIntegerColumns);
  Convolution known = given;
  if (zero && graph.is_zero(zero)) known.zero = {};
  if (takes_matrices(known, graph.features())) return convolution_by_matrices(graph, known);
  const Conv c(graph, known);
  graph.dispatch({c.out}, c.reads(), [c](Launch& launch) {
    c.out.resize(c.out_shape());
    if (c.out.numel() == 0) return;
    u32(c.x.numel());
    u32(c.out.numel());
    if (!c.direct) return launch_tiled(launch, c);
    ConvFacts facts = c.facts();
    facts.width = c.out.dim(3);
    const uint32_t columns = depthwise_columns(facts, launch.features);
    columns != 0 ? launch_depthwise(launch, c, columns) : launch_direct(launch, c);
  });
}

}  // namespace pumice
