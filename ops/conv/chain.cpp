// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/chain.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "glsl/conv2d_chain_fragments_int8.h"
#include "glsl/include/math/activation.glslh"
#include "graph/deferred.h"
#include "ops/conv/product_weight.h"
#include "ops/linear/packed_weight.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

using glsl::conv2d_chain_fragments_int8::Params;
using Product = ConvProduct;

constexpr uint32_t kLanes = 512, kSubgroups = kLanes / 32, kMostBlocks = 3, kBuffers = 16;
// Of all three weights, which every workgroup reads. Beyond that, a multiprocessor takes longer to read them than two
// more dispatches do.
constexpr int64_t kMostWeightBytes = 384 << 10;
// Tiles of 16 channels and 128 columns of a stage that a subgroup multiplies, each by instructions of its own.
constexpr int64_t kMostTiles = 8;

int64_t panels(int64_t channels) {
  return channels / kPanelRows;
}

int64_t tiles(int64_t groups) {
  return ceil_div(groups, 8);
}

// Groups of the columns of each stage.
std::array<int64_t, 3> groups_of(const ChainShape& s) {
  return {s.patch_groups, panels(s.channels[0]), panels(s.channels[1])};
}

// The most tiles that a subgroup has in a stage.
int64_t most_tiles(const ChainShape& s) {
  int64_t most = 0;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t at_once = std::min<int64_t>(panels(s.channels[i]), kSubgroups);
    const int64_t each = ceil_div(tiles(groups_of(s)[i]), kSubgroups / at_once);
    most = std::max(most, ceil_div(panels(s.channels[i]), at_once) * each);
  }
  return most;
}

bool can_chain(const Features& features) {
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::int8, Feature::fragments_int8})
    if (!features.has(feature)) return false;
  return !features.cpu && features.kernel.empty() && features.max_storage_buffers >= kBuffers &&
         features.max_invocations >= kLanes;
}

// Of a value that is not written yet in any layout, else null.
std::shared_ptr<const Product> deferred_product(Graph& graph, Tensor value) {
  const auto known = channels_last_of(graph, value);
  return is_deferred(graph, value) && !known->tensor ? known->product : nullptr;
}

// Whether it may be a stage: one image or several of bytes, requantized, without a function that is no clamp.
bool is_stage(const Product& p) {
  return p.x.dtype() == DType::i8 && p.out.dtype() == DType::i8 && p.act == ACT_NONE && !p.to_pixel;
}

struct Chain {
  std::array<Product, 3> stages;
  Tensor middle;  // channels-last: what the second stage writes
  uint32_t blocks;

  ChainShape shape() const {
    const Product& first = stages[0];
    return {
        {first.channels, stages[1].channels, stages[2].channels}, first.taps * first.pixel_groups, stages[2].pixels()};
  }
};

int32_t word_of(const Requantize& r) {
  const auto byte = [](int64_t value) { return static_cast<uint32_t>(value) & 0xffu; };
  return static_cast<int32_t>(byte(r.zero) | byte(r.low) << 8 | byte(r.high) << 16);
}

void describe(Launch& launch, const Chain& c) {
  const Product& first = c.stages[0];
  const Patches& window = first.window;
  const Addition& add = c.stages[1].addition;
  const auto pair = [](int64_t y, int64_t x) { return u32(y) | u32(x) << 16; };
  Params params{};
  params.pixels = u32(c.stages[2].pixels());
  params.out_h = u32(first.out.dim(2));
  params.out_w = u32(first.out.dim(3));
  params.in_h = u32(first.x.dim(2));
  params.in_w = u32(first.in_width());
  params.stride = pair(window.stride[0], window.stride[1]);
  params.dilation = pair(window.dilation[0], window.dilation[1]);
  params.pads = pair(window.pads[0], window.pads[1]);
  params.border = 0x01010101u * static_cast<uint8_t>(first.x_zero);
  uint32_t biases = 0;
  for (uint32_t s = 0; s < 3; ++s) {
    const Product& p = c.stages[s];
    params.x_zero[s] = static_cast<int32_t>(p.x_zero);
    params.x_scale[s] = static_cast<float>(p.x_scale);
    params.out_inverse[s] = p.requantize.inverse();
    params.range[s] = word_of(p.requantize);
    biases |= bool(p.bias) << s;
    launch.flops += 2ull * static_cast<uint64_t>(p.out.numel()) * static_cast<uint64_t>(p.weight.dim(1));
  }
  params.range[3] = word_of(add.requantize);
  params.sum_scale = static_cast<float>(add.scale);
  params.sum_zero = static_cast<int32_t>(add.zero);
  params.other_scale = static_cast<float>(add.other_scale);
  params.other_zero = static_cast<int32_t>(add.other_zero);
  params.total_inverse = add.requantize.inverse();
  launch.params(params);
  launch.spec.insert(
      launch.spec.end(),
      {u32(panels(first.channels)), u32(panels(c.stages[1].channels)), u32(panels(c.stages[2].channels)), c.blocks,
       u32(first.pixel_groups), u32(window.kernel[1]), u32(first.taps * first.pixel_groups),
       window.pads != std::array<int64_t, 4>{}, biases, bool(add.other), static_cast<uint32_t>(add.act)});
}

void add_chain(Graph& graph, const Chain& c, Tensor into) {
  const Tensor other = c.stages[1].addition.other;
  std::vector<Tensor> reads = {c.stages[0].x_channels_last};
  for (const Product& p : c.stages) reads.push_back(p.fragments);
  for (const Product& p : c.stages) reads.push_back(p.bias ? p.bias : p.fragments);
  for (const Product& p : c.stages) reads.push_back(p.scale);
  for (const Product& p : c.stages) reads.push_back(p.sums);
  reads.push_back(other ? other : c.stages[1].fragments);
  graph.dispatch({into, c.middle}, reads, [c, into](Launch& launch) {
    for (const Product& p : c.stages) p.out.resize(p.out_shape());
    const int64_t pixels = c.stages[2].pixels();
    into.resize({pixels * c.stages[2].channels / 4});
    c.middle.resize({pixels * c.stages[1].channels / 4});
    if (pixels == 0) return;
    launch.over_groups(static_cast<uint64_t>(ceil_div(pixels, int64_t{8} * c.blocks)), kLanes);
    launch.arithmetic = Arithmetic::i8;
    describe(launch, c);
    launch.shader = &glsl::conv2d_chain_fragments_int8::variant();
    require_subgroups(launch);
  });
}

}  // namespace

uint32_t chain_shared_bytes(const ChainShape& s, uint32_t blocks) {
  const auto pitch = [&](size_t stage) { return tiles(groups_of(s)[stage]) * 32 + 4; };  // words
  const int64_t pixels = int64_t{8} * blocks;
  return u32(4 * pixels * (std::max(pitch(0), pitch(2)) + pitch(1)) + 16 * kSubgroups * (pixels * 4 + 4));
}

uint32_t pick_chain(const ChainShape& s, const Features& features) {
  if (!can_chain(features) || s.pixels == 0) return 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (s.channels[i] % kPanelRows != 0) return 0;
    bytes += groups_of(s)[i] * 16 * s.channels[i];
  }
  if (most_tiles(s) > kMostTiles || bytes > kMostWeightBytes) return 0;
  // All workgroups at once, with as few pixels as that takes.
  for (uint32_t blocks = 1; blocks <= kMostBlocks; ++blocks) {
    if (ceil_div(s.pixels, int64_t{8} * blocks) > features.filling(132)) continue;
    return chain_shared_bytes(s, blocks) <= features.max_shared_bytes ? blocks : 0;
  }
  return 0;
}

bool waits_for_chain(Graph& graph, const Product& p) {
  if (!can_chain(graph.features()) || !p.is_pointwise() || !is_stage(p) || !has_fixed_shape(graph, p.out)) return false;
  const auto before = deferred_product(graph, p.x);
  return before && is_stage(*before) && (before->waits || uses_of(graph, p.x).size() == 1);
}

bool try_chain(Graph& graph, const Product& last, Tensor into) {
  if (!last.waits || into.id() == last.out.id() || last.addition.other) return false;
  const auto middle = deferred_product(graph, last.x);
  if (!middle || !middle->waits) return false;
  const auto first = deferred_product(graph, middle->x);
  if (!first || first->addition.other || uses_of(graph, middle->x).size() != 1) return false;
  Chain c{{*first, *middle, last}, {}, 0};
  c.blocks = pick_chain(c.shape(), graph.features());
  if (c.blocks == 0) return false;
  Tensor& x = c.stages[0].x_channels_last;
  if (!x) x = as_channels_last(graph, first->x);
  for (Product& p : c.stages) {
    p.fragments = pack_fragments(graph, p);
    p.sums = row_sums(graph, p);
  }
  const Tensor value = last.x, written = graph.scratch(DType::i32, 1);
  c.middle = channels_last_of(graph, value)->tensor = written;
  write_deferred(graph, value, [] {}, [=, &graph] { from_channels_last(graph, value, written); });
  add_chain(graph, c, into);
  return true;
}

}  // namespace pumice::engine
