// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/kernels.h"

#include <algorithm>
#include <vector>

#include "base/divide.h"
#include "ops/conv/channels_last.h"
#include "ops/linear/registers.h"
#include "ops/quant/qparams.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr std::string_view kDirect = "conv_direct", kDepthwise = "conv_depthwise", kTiled = "conv_tiled";
constexpr SmallConvTile kSmallTiles[] = {{"conv_tiled2x4", {32, 64, 2, 4}}, {"conv_tiled1x4", {32, 32, 1, 4}}};
bool is_small_tile(std::string_view kernel) {
  return std::ranges::find(kSmallTiles, kernel, &SmallConvTile::kernel) != std::end(kSmallTiles);
}
constexpr const char* kBuffers = "reads x from a buffer";
constexpr const char* kForGpus = "is made for GPUs";

// For conv/depthwise.glslh; as depthwise_columns.
uint32_t columns_of(const ConvFacts& f) {
  constexpr int64_t kMostTaps = 25;  // each is code of its own
  const Patches& p = f.patches;
  const bool window = p.kernel[0] * p.kernel[1] <= kMostTaps && p.stride[0] <= 3 && p.stride[1] <= 3 &&
                      p.dilation[0] <= 2 && p.dilation[1] <= 2;
  const bool depthwise = f.groups == f.in_channels && f.channels == f.groups && !p.transposed;
  if (!depthwise || !window || (f.quantized && is_float(f.x)) || f.textures) return 0;
  if (f.width % 4 == 0) return 4;
  if (!is_float(f.x)) return 0;  // whole vec4 groups
  // H200, EfficientNet-B0's layers of 7 x 7, fp16: 7.0 us each by one column, 8.8 by conv2d_direct.glsl.
  return f.x == DType::f16 && f.width % 2 == 0 ? 2 : 1;
}

}  // namespace

int64_t ConvFacts::terms() const {
  return in_channels / groups * patches.kernel[0] * patches.kernel[1];
}

// Only of images of less than a group of channels, which no convolution writes channels-last.
int64_t ConvFacts::row_taps() const {
  const int64_t taps = patches.kernel[1];
  const bool few = groups == 1 && !patches.transposed && channel_groups(2 * in_channels, x) == 1;
  return few && channel_groups(taps * in_channels, x) < taps ? taps : 1;
}

ConvShape ConvFacts::shape() const {
  const DType stored = is_float(x) ? x : DType::i8;
  const int64_t of_row = row_taps(), taps = patches.kernel[0] * patches.kernel[1] / of_row;
  return {channels, pixels, taps * channel_groups(of_row * in_channels / groups, x), stored};
}

bool is_direct(int64_t groups, int64_t channels_of_group) {
  return channels_of_group <= (groups > 1 ? 8 : 4);
}

std::span<const SmallConvTile> small_conv_tiles() {
  return kSmallTiles;
}

// Mali by Mesa's compiler, spills and fills, and ms to compile one. The pipelines of ResNet-50: of 4 x 4 outputs 54 to
// 103, 64 to 295; of 2 x 4 none, 23 to 53, but 11, 34 of the first convolution in fp32, whose window is 7 x 7: of 1 x 4
// none, 31. Bytes, 3 x 3: 134, 304; 5, 40; none, 29; other windows -; 12 to 18, 52; none, 30.
const SmallConvTile* small_conv_tile(const ConvFacts& f, const Features& features) {
  if (features.max_invocations < kSmallTiles[0].tile.subtiles()) return nullptr;
  const auto* forced = std::ranges::find(kSmallTiles, features.kernel, &SmallConvTile::kernel);
  if (forced != std::end(kSmallTiles)) return forced;
  if (features.kernel == kTiled || !takes_least_tiles(features)) return nullptr;
  const bool any_window = std::ranges::any_of(f.patches.kernel, [](int64_t size) { return !is_known_window(size); });
  return &kSmallTiles[is_byte(f.x) || (any_window && f.x == DType::f32)];
}

uint32_t depthwise_columns(const ConvFacts& facts, const Features& features) {
  if (features.kernel == kDirect || (features.cpu && features.kernel != kDepthwise)) return 0;
  return columns_of(facts);
}

std::string channels_last_unsupported_reason(const ConvFacts& f) {
  if (f.textures) return kBuffers;
  const bool types = is_float(f.x) ? !f.quantized : is_byte(f.x);
  if (!types || f.has_zero) return "takes floats, or 8-bit integers with weights without zero points";
  if (f.groups != 1 || f.patches.transposed) return "takes convolutions of one group, not transposed";
  if (is_direct(1, f.channels)) return "is for more output channels";
  const bool cut = std::ranges::any_of(f.patches.pads, [](int64_t pad) { return pad < 0; });
  if (cut) return "cuts nothing off";
  constexpr int64_t kMostTaps = 16;  // along an axis: x_taps_ of conv/load_patches.glslh
  const bool padded = f.patches.pads != std::array<int64_t, 4>{};
  return padded && std::ranges::max(f.patches.kernel) > kMostTaps
             ? "takes 16 taps along an axis at most where there is padding"
             : "";
}

std::span<const std::string_view> conv_kernels() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all = {kDirect, kDepthwise, kTiled};
    for (const SmallConvTile& each : kSmallTiles) all.push_back(each.kernel);
    for (const ConvKernel& kernel : channels_last_kernels()) all.push_back(kernel.name);
    return all;
  }();
  return kAll;
}

std::string_view conv_kernel(const ConvFacts& f, const Features& features) {
  if (is_direct(f.groups, f.channels / f.groups)) return depthwise_columns(f, features) != 0 ? kDepthwise : kDirect;
  const ConvPick pick = channels_last_unsupported_reason(f).empty() ? pick_conv(f.shape(), features) : ConvPick{};
  if (pick.kernel != nullptr) return pick.kernel->name;
  const SmallConvTile* small = small_conv_tile(f, features);
  return small != nullptr ? small->kernel : kTiled;
}

std::string conv_unsupported_reason(std::string_view kernel, const ConvFacts& f, const Features& features) {
  const bool direct = is_direct(f.groups, f.channels / f.groups);
  if (kernel == kDirect || kernel == kDepthwise) {
    if (!direct) return "is for groups of few output channels";
    if (kernel == kDepthwise && f.textures) return kBuffers;
    return kernel == kDirect || columns_of(f) != 0
               ? ""
               : "takes one channel a group, small windows and, of integers, rows of whole words";
  }
  if (direct) return "is for groups of more output channels";
  if (is_small_tile(kernel) && features.max_invocations < kSmallTiles[0].tile.subtiles())
    return "has workgroups of 256 invocations";
  if (kernel == kTiled || is_small_tile(kernel)) return "";
  if (std::string reason = channels_last_unsupported_reason(f); !reason.empty()) return reason;
  const ConvKernel& known = *std::ranges::find(channels_last_kernels(), kernel, &ConvKernel::name);
  if (known.x != f.shape().x)
    return known.x == DType::i8 ? "takes 8-bit integers" : "takes " + std::string(name(known.x));
  return unsupported_reason(known, features);
}

std::string conv_not_recommended_reason(std::string_view kernel, const Features& features) {
  return features.cpu && kernel != kDirect && kernel != kTiled ? kForGpus : "";
}

// Of floats: every sum, the scale, the bias and the activation round; matrix units may cut off where others round. Of
// integers: what an exact sum is multiplied by, twice, the bias and the activation.
SumRoundings conv_roundings(std::string_view kernel, const ConvFacts& f) {
  if (!is_float(f.x)) return {.per_term = 0, .fixed = 6};
  const bool plain = kernel == kDirect || kernel == kDepthwise || kernel == kTiled || is_small_tile(kernel);
  if (plain) return {.fixed = 4};
  const ConvKernel& known = *std::ranges::find(channels_last_kernels(), kernel, &ConvKernel::name);
  if (known.family == ConvFamily::matrix) return {.fixed = 2, .unit = 0x1p-23, .cuts = true};
  // conv/fragments.glslh: a term meets the others of its slot, then the sums of other slots, which are fewer than their
  // terms. fp32 has two more roundings for each tile of a slot: a slot that is alone has 8 tiles at most, and where
  // there are others, their terms outweigh these.
  if (known.x == DType::f16) return {.fixed = 4, .unit = 0x1p-23, .cuts = true};
  return {.fixed = 26, .unit = 0x1p-23, .of_terms = 0x1p-19, .cuts = true};
}

}  // namespace pumice::engine
