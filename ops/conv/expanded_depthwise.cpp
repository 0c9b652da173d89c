// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/expanded_depthwise.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "glsl/conv2d_expanded_depthwise_fragments.h"
#include "graph/deferred.h"
#include "ops/conv/channels_last_product.h"
#include "ops/conv/depthwise_mean.h"
#include "ops/conv/product_weight.h"
#include "ops/linear/packed_weight.h"  // kPanelRows
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

using glsl::conv2d_expanded_depthwise_fragments::OUT;

constexpr uint32_t kLanes = 512, kFewLanes = 256, kMostBlocks = 8, kMostMeanBlocks = 2, kBuffers = 7;
constexpr int64_t kMostTaps = 25;  // each is code of its own
// Workgroups that are better than fewer ones of more rows, which compute fewer of them twice; and the most that were
// measured. H200, all of MobileNetV2, ms, of at least 16, 64, 132 and 264: 0.204, 0.197, 0.200, 0.196 to 0.213, and
// 0.257 by two dispatches for each pair.
constexpr int64_t kFill = 64, kMostGroups = 264;

bool can_run(const Features& features) {
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, Feature::fragments})
    if (!features.has(feature)) return false;
  return !features.cpu && features.kernel.empty() && features.max_storage_buffers >= kBuffers &&
         features.max_invocations >= kLanes;
}

// As the shader declares it.
uint32_t shared_bytes_of(const ExpandedShape& s, const ExpandedStrips& strips) {
  const int64_t across = (ceil_div(s.width, int64_t{strips.columns}) * strips.columns - 1) * s.stride[1];
  const int64_t pitch = (across + s.kernel[1]) | 1, seen = (strips.rows - 1) * s.stride[0] + s.kernel[0];
  const int64_t middle = seen * pitch * 32, taps = s.kernel[0] * s.kernel[1] * 64, outputs = 64 * strips.rows * s.width;
  return u32(middle + taps + outputs + (s.means ? 4 * strips.lanes : 0));
}

// A strip of so many rows; of none where they do not fit.
ExpandedStrips strip_of(const ExpandedShape& s, int64_t rows, const Features& features) {
  ExpandedStrips strip{.rows = u32(rows), .strips = u32(ceil_div(s.height, rows))};
  const int64_t seen = std::min((rows - 1) * s.stride[0] + s.kernel[0], s.in_height);
  const int64_t blocks = ceil_div(seen * s.in_width, int64_t{8});
  strip.lanes = blocks > kFewLanes / 32 ? kLanes : kFewLanes;
  strip.blocks = u32(ceil_div(blocks, int64_t{strip.lanes / 32}));
  while (strip.columns < 4 && 8 * rows * ceil_div(s.width, int64_t{strip.columns}) > strip.lanes) strip.columns *= 2;
  strip.shared_bytes = shared_bytes_of(s, strip);
  // Of NCHW: vec4 groups of a plane, or all of 16 planes.
  const bool whole = strip.strips == 1 || (s.height * s.width % 4 == 0 && rows * s.width % 4 == 0);
  const bool fits =
      strip.blocks <= (s.means ? kMostMeanBlocks : kMostBlocks) && strip.shared_bytes <= features.max_shared_bytes;
  return whole && fits ? strip : ExpandedStrips{};
}

struct Expanded {
  ConvProduct expansion;
  Convolution depthwise;
  bool means;
};

ExpandedShape shape_of(const Expanded& e) {
  const Convolution& c = e.depthwise;
  return {.batch = c.x.dim(0),
          .in_height = c.x.dim(2),
          .in_width = c.x.dim(3),
          .height = c.out.dim(2),
          .width = c.out.dim(3),
          .channels = c.x.dim(1),
          .kernel = c.patches.kernel,
          .stride = c.patches.stride,
          .means = e.means};
}

void describe(Launch& launch, const Expanded& e, const ExpandedStrips& strips) {
  using glsl::conv2d_expanded_depthwise_fragments::Params;
  const ConvProduct& p = e.expansion;
  const Convolution& c = e.depthwise;
  const ExpandedShape s = shape_of(e);
  Params params{};
  params.channels = u32(p.channels);
  params.plane = u32(s.in_height * s.in_width);
  params.pixels = u32(s.batch * s.in_height * s.in_width);
  params.out_h = params.in_h = u32(s.in_height);
  params.out_w = params.in_w = u32(s.in_width);
  params.in_channels = u32(p.columns);
  params.stride = params.dilation = 0x10001;
  params.last_h = u32(s.height);
  params.pad_h = static_cast<int32_t>(c.patches.pads[0]);
  params.pad_w = static_cast<int32_t>(c.patches.pads[1]);
  launch.params(params);
  launch.spec.insert(launch.spec.end(), {(p.bias ? 1U : 0U) | (c.bias ? 2U : 0U), static_cast<uint32_t>(p.act),
                                         static_cast<uint32_t>(c.act), u32(p.pixel_groups), strips.blocks,
                                         strips.strips, strips.rows, u32(s.in_width), u32(s.width), u32(s.kernel[0]),
                                         u32(s.kernel[1]), u32(s.stride[0]), u32(s.stride[1]), strips.columns});
  launch.flops = 2ull * static_cast<uint64_t>(p.out.numel() * p.columns + c.out.numel() * s.kernel[0] * s.kernel[1]);
  launch.arithmetic = Arithmetic::f16;
  launch.writes_once = true;
}

// `into`: the output, or an i32 scratch that gets it channels-last. `means`: empty, or what gets those, too.
void add_expanded(Graph& graph, const Expanded& e, Tensor into, Tensor means) {
  const ConvProduct& p = e.expansion;
  const Convolution& c = e.depthwise;
  std::vector<Tensor> writes = {into};
  if (means) writes.push_back(means);
  const std::vector<Tensor> reads = {p.x_channels_last, p.fragments, p.bias ? p.bias : p.fragments, c.weight,
                                     c.bias ? c.bias : p.fragments};
  graph.dispatch(writes, reads, [=](Launch& launch) {
    using namespace glsl::conv2d_expanded_depthwise_fragments;
    e.expansion.out.resize(e.expansion.out_shape());
    e.depthwise.out.resize(e.depthwise.out_shape());
    const Tensor& out = e.depthwise.out;
    const bool channels_last = into.id() != out.id();
    if (channels_last) into.resize({out.numel() / 2});
    const ExpandedStrips strips = pick_strips(shape_of(e), launch.features);
    const int64_t planes = out.dim(0) * out.dim(1) / kPanelRows;
    if (means) means.resize({out.dim(0), out.dim(1)});
    launch.over_groups(static_cast<uint64_t>(planes * strips.strips), strips.lanes);
    describe(launch, e, strips);
    launch.shader = &variant(means ? OUT::means : channels_last ? OUT::channels_last : OUT::nchw);
    require_subgroups(launch);
  });
}

// The convolution whose deferred result `value` is, where nothing else reads that and it is one of single pixels.
std::shared_ptr<const ConvProduct> expansion_of(Graph& graph, Tensor value) {
  if (!is_deferred(graph, value) || uses_of(graph, value).size() != 1) return nullptr;
  const auto known = channels_last_of(graph, value);
  const auto& p = known->product;
  const bool suits = p && !known->tensor && p->is_pointwise() && !p->addition.other && !p->waits && !p->to_pixel &&
                     p->x_channels_last && !p->may_read_nchw && p->row_taps == 1 && p->x.dtype() == DType::f16 &&
                     p->channels % kPanelRows == 0;
  return suits ? p : nullptr;
}

bool is_depthwise(const Convolution& c) {
  const Patches& p = c.patches;
  return c.x.dtype() == DType::f16 && c.out.dtype() == DType::f16 && !c.scale && c.groups == c.x.dim(1) &&
         c.weight.dim(0) == c.groups && !p.transposed && p.kernel[0] * p.kernel[1] <= kMostTaps &&
         p.dilation == std::array<int64_t, 2>{1, 1} && p.stride[0] <= 2 && p.stride[1] <= 2 &&
         std::ranges::all_of(p.pads, [](int64_t pad) { return pad >= 0; });
}

}  // namespace

// Means are of whole planes, which subgroups have two blocks of at most. H200, EfficientNet-B0's layers of 14 x 14 and
// 7 x 7, us with means, and of two dispatches: 5.9 to 8.0, 10.8 to 13.4. Larger images, when the last workgroup of a
// plane added up its strips: 10 to 15, 11 to 15.
ExpandedStrips pick_strips(const ExpandedShape& s, const Features& features) {
  if (!can_run(features)) return {};
  const int64_t panels = s.batch * s.channels / kPanelRows, least = s.means ? s.height : 1;
  ExpandedStrips best;
  for (int64_t rows = s.height; rows >= least; --rows) {
    const ExpandedStrips strip = strip_of(s, rows, features);
    if (strip.rows == 0 || strip.strips == best.strips || panels * strip.strips > features.filling(kMostGroups))
      continue;
    best = strip;
    if (panels * strip.strips >= features.filling(kFill)) break;
  }
  return best;
}

bool try_expanded_depthwise(Graph& graph, const Convolution& c) {
  if (c.x.storage() == StorageType::texture3d || !is_depthwise(c) || !can_run(graph.features())) return false;
  if (!has_fixed_shape(graph, c.x) || !has_fixed_shape(graph, c.out) || c.out.numel() == 0) return false;
  const auto before = expansion_of(graph, c.x);
  const auto bytes = static_cast<uint64_t>(c.out.numel() * device_bytes(c.out.dtype()));
  if (!before || bytes > graph.features().max_storage_bytes || c.out.shape() != c.out_shape()) return false;
  const auto is_mean = [&](const Use& use) { return reader(graph, use) == "mean"; };
  Expanded e{*before, c, std::ranges::any_of(uses_of(graph, c.out), is_mean)};
  if (pick_strips(shape_of(e), graph.features()).rows == 0) return false;
  e.expansion.fragments = pack_fragments(graph, e.expansion);
  channels_last_of(graph, c.out)->write = [=, &graph](Tensor into) { add_expanded(graph, e, into, {}); };
  defer(graph, c.out, [=, &graph] { add_expanded(graph, e, c.out, {}); });
  if (e.means) offer_mean(graph, c.out, [=, &graph](Tensor means) { add_expanded(graph, e, c.out, means); });
  return true;
}

}  // namespace pumice::engine
