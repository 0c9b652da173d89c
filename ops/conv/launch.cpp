// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/launch.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/divide.h"
#include "glsl/conv2d_depthwise.h"
#include "glsl/conv2d_depthwise_int8.h"
#include "glsl/conv2d_depthwise_mean.h"
#include "glsl/conv2d_direct.h"
#include "glsl/conv2d_direct_int8.h"
#include "glsl/conv2d_tiled.h"
#include "glsl/conv2d_tiled_int8.h"
#include "glsl/include/core/modes.glslh"
#include "ops/conv/kernels.h"
#include "ops/linear/pick.h"
#include "ops/linear/registers.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// What a dispatch computes: some output channels of some images.
struct OutputBlock {
  RowRange images, channels;
};

template <class Params>
Params describe(Launch& launch, const ConvLaunch& c, const OutputBlock& block, bool whole_vec4s) {
  Params params{};
  params.batch = block.images.count;
  params.groups = u32(c.groups);
  params.in_channels = u32(c.x.dim(1) / c.groups);
  params.in_h = u32(c.x.dim(2));
  params.in_w = u32(c.x.dim(3));
  params.out_channels = block.channels.count / params.groups;
  params.out_h = u32(c.out.dim(2));
  params.out_w = u32(c.out.dim(3));
  put(params, c.patches);
  params.k = c.k;
  const auto known = [](int64_t side) { return is_known_window(side) ? static_cast<uint32_t>(side) : 0u; };
  const bool has_zero = c.direct ? bool(c.zero) : bool(c.packed.zero);
  launch.spec.insert(
      launch.spec.end(),
      {bool(c.bias), has_zero, whole_vec4s || c.textures, static_cast<uint32_t>(c.act), known(c.patches.kernel[0]),
       known(c.patches.kernel[1]), c.is_pointwise() && !c.textures, c.patches.transposed});
  const auto plane = static_cast<uint64_t>(c.out.dim(2) * c.out.dim(3));
  launch.flops = 2ull * block.images.count * block.channels.count * plane * c.k;
  launch.arithmetic = c.integers ? Arithmetic::i8 : arithmetic_of(c.x.dtype());
  return params;
}

// For shaders that take integers.
template <class Params>
Params with_numbers(Params params, const ConvLaunch& c) {
  params.x_zero = static_cast<int32_t>(c.x_zero);
  params.x_scale = static_cast<float>(c.x_scale);
  put(params, c.requantize);
  return params;
}

void launch_direct(Launch& launch, const ConvLaunch& c, const OutputBlock& block) {
  launch.over((c.outputs(block.images.count * c.out.dim(1)) + 3) / 4);
  const bool whole_vec4s = c.out.dim(3) % 4 == 0;
  if (c.integers) {
    using namespace glsl::conv2d_direct_int8;
    launch.params(with_numbers(describe<Params>(launch, c, block, whole_vec4s), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()), static_cast<STORAGE>(c.textures));
  } else {
    using namespace glsl::conv2d_direct;
    launch.params(describe<Params>(launch, c, block, whole_vec4s));
    launch.shader = &variant(dtype(c.x.dtype()), c.scale ? WEIGHT::i8 : WEIGHT::same, static_cast<STORAGE>(c.textures));
  }
}

ConvFacts facts_of(const ConvLaunch& c) {
  ConvFacts facts = c.facts();
  facts.width = c.out.dim(3);
  return facts;
}

// Neighbouring outputs of an invocation; columns 0: it has no such block.
struct DepthwiseBlock {
  uint32_t columns, rows;
  int64_t in_plane(const ConvLaunch& c) const { return ceil_div(c.out.dim(2), rows) * c.out.dim(3) / columns; }
};

DepthwiseBlock depthwise_block(const ConvLaunch& c, const Features& features) {
  // Fewer rows read more and are done sooner where a GPU has few invocations. H200, fp16 with means, us of 4, 2 and 1:
  // 5x5, 144 channels of 28x28 11.5, 9.8, 8.6; 240 10.0, 8.4, 7.8; 672 of 14x14 7.2, 6.7, 8.1; 3x3, 480 of 14x14 6.7,
  // 6.0, 5.8; 32 of 112x112 10.4, 11.8, 12.4.
  constexpr int64_t kManyBlocks = 50'000;
  DepthwiseBlock block{depthwise_columns(facts_of(c), features), 1};
  if (block.columns < 2) return block;
  const auto blocks = [&](uint32_t rows) {
    return c.out.numel() / (c.out.dim(2) * c.out.dim(3)) * DepthwiseBlock{block.columns, rows}.in_plane(c);
  };
  block.rows = takes_least_tiles(features) ? 2 : 4;  // Mali, spills of 4 and 2: bytes 3 x 3 13, 0; 5 x 5 12 to 14, 0
  while (block.rows > 1 && blocks(block.rows / 2) <= features.filling(kManyBlocks)) block.rows /= 2;
  return block;
}

template <class Params>
Params describe_depthwise(Launch& launch, const ConvLaunch& c, const OutputBlock& block, DepthwiseBlock of_lane) {
  const Patches& p = c.patches;
  const auto params = describe<Params>(launch, c, block, true);
  // All sizes are constants, so that the window stays in registers.
  launch.spec[5] = params.kernel_h;
  launch.spec[6] = params.kernel_w;
  launch.spec.insert(launch.spec.end(), {u32(p.stride[0]), u32(p.stride[1]), u32(p.dilation[0]), u32(p.dilation[1]),
                                         of_lane.columns, of_lane.rows});
  return params;
}

void launch_depthwise(Launch& launch, const ConvLaunch& c, const OutputBlock& block, DepthwiseBlock of_lane) {
  launch.over(static_cast<uint64_t>(block.images.count * c.out.dim(1) * of_lane.in_plane(c)));
  if (c.integers) {
    using namespace glsl::conv2d_depthwise_int8;
    launch.params(with_numbers(describe_depthwise<Params>(launch, c, block, of_lane), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()));
  } else {
    using namespace glsl::conv2d_depthwise;
    launch.params(describe_depthwise<Params>(launch, c, block, of_lane));
    launch.shader = &variant(dtype(c.x.dtype()));
  }
}

int64_t pixels(const ConvLaunch& c, const OutputBlock& block) {
  return static_cast<int64_t>(c.outputs(block.images.count));
}

template <class Params>
Params describe_tiles(Launch& launch, const ConvLaunch& c, const OutputBlock& block, const Tile& tile) {
  const int64_t of_group = block.channels.count / c.groups;
  // A group that begins inside of a row panel has up to 15 rows of other groups before its own.
  const int64_t rows = of_group % kPanelRows == 0 ? of_group : of_group + kPanelRows - 1;
  const int64_t row_blocks = ceil_div(rows, tile.bm);
  launch.over_groups(static_cast<uint64_t>(c.groups * row_blocks * ceil_div(pixels(c, block), tile.bn)),
                     tile.subtiles());
  auto params = describe<Params>(launch, c, block, c.out.dim(2) * c.out.dim(3) % 4 == 0);
  launch.spec.insert(launch.spec.end(), {tile.bm, tile.bn, tile.tm, tile.tn});
  params.tiles = panel_tiles(c.k);
  params.row_blocks = static_cast<uint32_t>(row_blocks);
  params.channels = c.channels;
  return params;
}

void launch_tiled(Launch& launch, const ConvLaunch& c, const OutputBlock& block) {
  // Exact floats, and the integers that they are added to; of floats, the patch takes as many registers.
  constexpr uint32_t sums = 2;
  const SmallConvTile* small = small_conv_tile(c.facts(), launch.features);
  const Tile tile = small != nullptr ? small->tile
                                     : pick_tile(c.groups, block.channels.count / c.groups, u32(pixels(c, block)),
                                                 launch.features, sums);
  if (c.integers) {
    using namespace glsl::conv2d_tiled_int8;
    launch.params(with_numbers(describe_tiles<Params>(launch, c, block, tile), c));
    launch.shader = &variant(in(c.x.dtype()), dtype(c.out.dtype()), static_cast<STORAGE>(c.textures));
  } else {
    using namespace glsl::conv2d_tiled;
    launch.params(describe_tiles<Params>(launch, c, block, tile));
    const WEIGHT weight = c.scale ? WEIGHT::q8 : c.x.dtype() == DType::f16 ? WEIGHT::f16 : WEIGHT::f32;
    launch.shader = &variant(dtype(c.x.dtype()), weight, static_cast<STORAGE>(c.textures));
  }
}

void launch_block(Launch& launch, const ConvLaunch& c, const OutputBlock& block) {
  if (!c.direct) return launch_tiled(launch, c, block);
  const DepthwiseBlock of_lane = depthwise_block(c, launch.features);
  of_lane.columns != 0 ? launch_depthwise(launch, c, block, of_lane) : launch_direct(launch, c, block);
}

uint64_t image_bytes(const Tensor& x) {
  return static_cast<uint64_t>(x.numel() / x.dim(0)) * device_bytes(x.dtype());
}

// How many images fit a binding of the device, where each binding but the first begins at an offset that one may have;
// `mean`: bytes of another output, of an image.
uint64_t images_that_fit(const ConvLaunch& c, const Features& features, uint64_t mean) {
  const uint64_t x = image_bytes(c.x), out = image_bytes(c.out),
                 align = std::max<uint64_t>(features.storage_alignment, 16);
  const uint64_t step = align / std::gcd(align, std::gcd(std::gcd(x, out), mean));
  return features.max_storage_bytes / std::max(x, out) / step * step;
}

// Ranges of images that fit, mostly one. Where not even the fewest such images fit, one range: check_bindings then
// reports the value.
std::vector<RowRange> image_ranges(const ConvLaunch& c, const Features& features, uint64_t mean = 0) {
  const uint64_t fits = images_that_fit(c, features, mean), batch = u32(c.x.dim(0));
  if (fits == 0 || fits >= batch) return {{0, static_cast<uint32_t>(batch)}};
  std::vector<RowRange> blocks;
  for (uint64_t first = 0; first < batch; first += fits)
    blocks.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(std::min(fits, batch - first))});
  return blocks;
}

// In the order of the output and ConvLaunch::reads. The channels of a block begin at an offset that a binding may have.
std::vector<BindingRange> binding_ranges(const ConvLaunch& c, const OutputBlock& block) {
  const auto batch = static_cast<uint32_t>(c.x.dim(0));
  const BindingRange x = binding_range(block.images, batch, image_bytes(c.x));
  BindingRange out = binding_range(block.images, batch, image_bytes(c.out));
  const uint64_t first = image_bytes(c.out) / c.channels * block.channels.first;
  out = {out.begin + first, out.bytes == 0 ? 0 : out.bytes - first};
  const BindingRange bias = c.bias ? BindingRange{uint64_t{block.channels.first} * device_bytes(c.bias.dtype()), 0} : x;
  if (c.direct) return {out, x, {}, bias, {}, c.zero ? BindingRange{} : x};
  const auto [weight, scale, zero] = weight_binding_ranges(c.packed, block.channels);
  return {out, x, weight, bias, scale, zero};
}

uint64_t mean_bytes(const ConvLaunch& c) {
  return uint64_t{c.channels} * device_bytes(c.out.dtype());
}

// How the kernel of a depthwise convolution and its means divides the work.
struct MeanWork {
  DepthwiseBlock of_lane;     // of 0 columns: it does not compute this
  uint32_t planes, of_plane;  // of a workgroup; lanes of each
  uint32_t outputs;           // of a workgroup in shared memory
};

// A workgroup goes through its planes: large ones are better shared by many.
MeanWork mean_work(const ConvLaunch& c, const Features& features) {
  constexpr int64_t kMostOutputs = 3584, kMostBlocks = 4096, kWordElements = 4;  // 14 KiB
  const DepthwiseBlock of_lane = depthwise_block(c, features);
  const uint32_t columns = of_lane.columns;
  if (columns == 0) return {};
  const int64_t pixels = c.out.dim(2) * c.out.dim(3), blocks = of_lane.in_plane(c);
  const int64_t planes = columns == 1 ? kWordElements / std::gcd(pixels, kWordElements) : 1;
  if (pixels == 0 || blocks > kMostBlocks || (columns == 1 && planes * pixels > kMostOutputs)) return {};
  const uint32_t most = std::min(features.few_registers ? 256U : 512U, std::bit_floor(features.max_invocations));
  const uint32_t of_plane = std::clamp(std::bit_ceil(u32(blocks)), 32U, std::max(most / u32(planes), 32U));
  return {of_lane, u32(planes), of_plane, columns == 1 ? u32(planes * pixels) : 1};
}

}  // namespace

ConvLaunch::ConvLaunch(Graph& graph, const Convolution& c)
    : Convolution(c), channels(u32(weight.dim(0))), k(u32(weight.dim(1))) {
  integers = !is_float(x.dtype());
  direct = is_direct(groups, channels / groups);
  textures = x.storage() == StorageType::texture3d;
  if (!direct) packed = pack_weight(graph, op, weight, scale, zero, weight.dim(1));
}

std::vector<Tensor> ConvLaunch::reads() const {
  const Tensor any = textures ? Tensor() : x;
  std::vector<Tensor> reads = {x, direct ? weight : packed.weight, bias ? bias : any};
  if (scale && direct) reads.insert(reads.end(), {scale, zero ? zero : any});
  if (scale && !direct) reads.insert(reads.end(), {packed.scale, packed.zero ? packed.zero : packed.scale});
  return reads;
}

int64_t ConvLaunch::width() const {
  return textures ? ceil_div(out.dim(3), 4) * 4 : out.dim(3);
}

uint64_t ConvLaunch::outputs(int64_t of_channels) const {
  return u32(of_channels * out.dim(2) * width());
}

void launch_convolution(Launch& launch, const ConvLaunch& c) {
  const auto batch = static_cast<uint32_t>(c.x.dim(0));
  if (c.textures) return launch_block(launch, c, {{0, batch}, {0, c.channels}});
  // A group's channels stay together.
  std::vector<RowRange> channels = {{0, c.channels}};
  if (!c.direct && c.groups == 1) channels = weight_row_ranges(c.packed, launch.features);
  for (const RowRange& images : image_ranges(c, launch.features)) {
    for (const RowRange& range : channels) {
      const OutputBlock block{images, range};
      launch_block(launch, c, block);
      launch.binding_ranges = binding_ranges(c, block);
      if (!c.scale) launch.binding_ranges.resize(4);
      launch.next_dispatch();
    }
  }
}

bool takes_mean(const ConvLaunch& c, const Features& features) {
  return c.direct && !c.integers && !c.scale && c.x.numel() > 0 && c.out.numel() > 0 &&
         mean_work(c, features).of_lane.columns != 0 && images_that_fit(c, features, mean_bytes(c)) != 0;
}

void launch_depthwise_mean(Launch& launch, const ConvLaunch& c) {
  using namespace glsl::conv2d_depthwise_mean;
  const MeanWork work = mean_work(c, launch.features);
  const auto batch = static_cast<uint32_t>(c.x.dim(0));
  for (const RowRange& images : image_ranges(c, launch.features, mean_bytes(c))) {
    const OutputBlock block{images, {0, c.channels}};
    launch.over_groups(static_cast<uint64_t>(ceil_div(int64_t{images.count} * c.channels, work.planes)),
                       work.planes * work.of_plane);
    launch.params(describe_depthwise<Params>(launch, c, block, work.of_lane));
    launch.spec.insert(launch.spec.end(), {work.planes, work.outputs});
    launch.shader = &variant(dtype(c.x.dtype()));
    launch.binding_ranges = binding_ranges(c, block);
    launch.binding_ranges.insert(launch.binding_ranges.begin() + 1, binding_range(images, batch, mean_bytes(c)));
    launch.binding_ranges.resize(5);
    launch.next_dispatch();
  }
}

}  // namespace pumice::engine
