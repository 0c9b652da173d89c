// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/product_launch.h"

#include <algorithm>
#include <cinttypes>

#include "base/divide.h"
#include "glsl/conv2d_dot.h"
#include "glsl/conv2d_fragments.h"
#include "glsl/conv2d_fragments_int8.h"
#include "glsl/conv2d_matrix.h"
#include "glsl/conv2d_matrix_int8.h"
#include "glsl/conv2d_split_k.h"
#include "glsl/conv2d_split_k_int8.h"
#include "glsl/conv2d_tile_fragments.h"
#include "ops/conv/split_tiles.h"
#include "ops/linear/packed_weight.h"  // kPanelRows
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

// Params of all shaders that end a convolution (glsl/include/conv/epilogue.glslh), and their first constants.
template <class Params>
void describe(Launch& launch, const ConvProduct& p, const Tile& tile) {
  const Patches& window = p.window;
  const Addition& add = p.addition;
  const auto pair = [](int64_t y, int64_t x) { return u32(y) | u32(x) << 16; };
  Params params{};
  params.channels = u32(p.channels);
  params.pixels = u32(p.pixels());
  params.plane = u32(p.out.dim(2) * p.out.dim(3));
  params.out_h = u32(p.out.dim(2));
  params.out_w = u32(p.out.dim(3));
  params.in_channels = u32(p.columns);
  params.row_blocks = u32(ceil_div(p.channels, tile.bm));
  params.column_blocks = u32(ceil_div(p.pixels(), tile.bn));
  params.in_h = u32(p.x.dim(2));
  params.in_w = u32(p.in_width());
  params.stride = pair(window.stride[0], window.stride[1]);
  params.dilation = pair(window.dilation[0], window.dilation[1]);
  params.pads = pair(window.pads[0], window.pads[1]);
  if (p.integers) params.border = 0x01010101u * static_cast<uint8_t>(p.signed_zero());
  params.x_zero = static_cast<int32_t>(p.signed_zero());
  params.x_scale = static_cast<float>(p.x_scale);
  put(params, p.requantize);
  params.sum_scale = static_cast<float>(add.scale);
  params.sum_zero = static_cast<int32_t>(add.zero);
  params.other_scale = static_cast<float>(add.other_scale);
  params.other_zero = static_cast<int32_t>(add.other_zero);
  params.total_inverse = add.requantize.inverse();
  params.total_zero = static_cast<float>(add.requantize.zero);
  params.total_low = static_cast<float>(add.requantize.low);
  params.total_high = static_cast<float>(add.requantize.high);
  launch.params(params);
  launch.spec.insert(launch.spec.end(), {bool(p.bias), params.plane % 4 == 0, static_cast<uint32_t>(p.act),
                                         bool(add.other), static_cast<uint32_t>(add.act)});
}

void multiply_by_dots(Launch& launch, const ConvProduct& p, const ConvPick& pick) {
  using namespace glsl::conv2d_dot;
  const Tile& t = pick.kernel->tile;
  describe<Params>(launch, p, t);
  launch.shader = &variant(dtype(p.out.dtype()));
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn, u32(p.pixel_groups), u32(p.window.kernel[1]),
                                         u32(p.taps * p.pixel_groups), pick.splits, is_padded(p), last_adds(pick)});
}

}  // namespace

bool is_padded(const ConvProduct& p) {
  return p.window.pads != std::array<int64_t, 4>{};
}

ConvShape shape_of(const ConvProduct& p, int64_t pixels) {
  using Packing = ConvShape::Packing;
  const Packing packing = bool(p.chunks) == bool(p.fragments) ? Packing::any
                          : p.chunks                          ? Packing::chunks
                                                              : Packing::fragments;
  return {p.channels, pixels, p.taps * p.pixel_groups, p.integers ? DType::i8 : p.x.dtype(), packing};
}

static void multiply_by_tiles(Launch& launch, const ConvProduct& p, const ConvKernel& kernel, bool channels_last_out) {
  using namespace glsl::conv2d_tile_fragments;
  const Tile& t = kernel.tile;
  const uint32_t lanes = split_tile_lanes(kernel, shape_of(p, p.pixels()), launch.features);
  launch.over_groups(static_cast<uint64_t>(ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn)), lanes);
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  launch.writes_once = channels_last_out;
  launch.arithmetic = Arithmetic::split3;
  launch.split = true;
  describe<Params>(launch, p, t);
  launch.shader = &variant(channels_last_out ? OUT::channels_last : OUT::nchw);
  launch.spec.insert(launch.spec.end(), {t.subtiles(), t.bn / 8, lanes / 32 / t.subtiles(), u32(p.pixel_groups),
                                         u32(p.window.kernel[1]), u32(p.taps * p.pixel_groups), is_padded(p),
                                         p.is_pointwise(), p.fragments_read_nchw, bool(p.factors), t.tm / kPanelRows});
  require_subgroups(launch);
}

void multiply_by_fragments(Launch& launch, const ConvProduct& p, const ConvKernel& kernel, bool channels_last_out) {
  if (is_split_tile(kernel)) return multiply_by_tiles(launch, p, kernel, channels_last_out);
  const ConvShape shape = shape_of(p, p.pixels());
  const Tile& t = kernel.tile;
  constexpr uint32_t kLeastNchwLanes = 128;  // which all store, though some may multiply nothing
  const uint32_t lanes =
      std::max(fragment_lanes(kernel, shape, launch.features), channels_last_out ? 0 : kLeastNchwLanes);
  launch.over_groups(static_cast<uint64_t>(ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn)), lanes);
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  launch.writes_once = channels_last_out;
  launch.arithmetic = p.units ? Arithmetic::split3 : p.integers ? Arithmetic::i8 : Arithmetic::f16;
  launch.split = bool(p.units);
  if (p.integers) {
    using namespace glsl::conv2d_fragments_int8;
    describe<Params>(launch, p, t);
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_fragments;
    describe<Params>(launch, p, t);
    launch.shader = &variant(p.units ? DTYPE::f32 : DTYPE::f16, channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  launch.spec.insert(launch.spec.end(), {t.bm / kPanelRows, t.bn / 8, u32(p.pixel_groups), u32(p.window.kernel[1]),
                                         u32(p.taps * p.pixel_groups), is_padded(p), p.is_pointwise()});
  if (!p.integers) launch.spec.insert(launch.spec.end(), {p.fragments_read_nchw, bool(p.factors)});
  require_subgroups(launch);
}

void multiply(Launch& launch, const ConvProduct& p, const ConvPick& pick, bool channels_last_out) {
  const ConvKernel& kernel = *pick.kernel;
  const Features& features = launch.features;
  const Tile& t = kernel.tile;
  const int64_t tiles = ceil_div(p.channels, t.bm) * ceil_div(p.pixels(), t.bn);
  if (pick.splits > 1 && last_adds(pick) && tiles > most_split_tiles(features))
    fail(Code::Internal, Stage::plan, "", "%" PRId64 " tiles of a convolution in splits have no tickets", tiles);
  launch.over_groups(static_cast<uint64_t>(tiles * pick.splits), conv_lanes(kernel, features));
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  launch.writes_once = channels_last_out;
  launch.arithmetic = p.integers ? Arithmetic::i8 : Arithmetic::f16;
  if (kernel.family == ConvFamily::dot) return multiply_by_dots(launch, p, pick);
  if (p.integers) {
    using namespace glsl::conv2d_matrix_int8;
    describe<Params>(launch, p, t);
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_matrix;
    describe<Params>(launch, p, t);
    launch.shader =
        &variant(p.reads_nchw() ? X::nchw : X::channels_last, channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  const MatrixShape& shape = conv_matrix(kernel, features);
  launch.spec.insert(
      launch.spec.end(),
      {t.bm, t.bn, t.tm, t.tn, shape.m, shape.n, shape.k, conv_shared_bytes(kernel, features) / 16, u32(p.pixel_groups),
       u32(p.window.kernel[1]), u32(p.taps * p.pixel_groups), pick.splits, is_padded(p), last_adds(pick)});
  if (p.reads_nchw()) launch.spec.push_back(bool(p.factors));
  require_subgroups(launch);
}

void add_splits(Launch& launch, const ConvProduct& p, uint32_t splits, bool channels_last_out) {
  const bool vec4 = channels_last_out || p.out.dim(2) * p.out.dim(3) % 4 == 0;
  launch.over(u32(p.channels * p.pixels() / (vec4 ? 4 : 1)));
  if (p.integers) {
    using namespace glsl::conv2d_split_k_int8;
    describe<Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &variant(dtype(p.out.dtype()), channels_last_out ? OUT::channels_last : OUT::nchw);
  } else {
    using namespace glsl::conv2d_split_k;
    describe<Params>(launch, p, {1, 1, 1, 1});
    launch.shader = &variant(channels_last_out ? OUT::channels_last : OUT::nchw);
  }
  launch.spec.push_back(splits);
}

}  // namespace pumice::engine
