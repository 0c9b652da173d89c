// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last_kernels.h"

#include <algorithm>

#include "base/divide.h"
#include "ops/conv/split_tiles.h"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/packed_weight.h"  // kPanelRows
#include "ops/linear/pick.h"
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

// Of a dtype, large to small, matrices before dot products. Fragments: those of linear layers, of 16 channels a panel
// and 8 pixels for 8 rows.
constexpr ConvKernel kKernels[] = {
    {"conv_gemvf16x2", DType::f16, {32, 16, 32, 16}, ConvFamily::fragments},
    {"conv_gemvf16", DType::f16, {16, 16, 16, 16}, ConvFamily::fragments},
    {"conv_gemvf8x2", DType::f16, {32, 8, 32, 8}, ConvFamily::fragments},
    {"conv_gemvf8", DType::f16, {16, 8, 16, 8}, ConvFamily::fragments},
    {"split_conv_gemvf8x2", DType::f32, {32, 8, 32, 8}, ConvFamily::fragments},
    {"split_conv128x32", DType::f32, {128, 32, 32, 32}, ConvFamily::fragments},
    {"split_conv64x32", DType::f32, {64, 32, 16, 32}, ConvFamily::fragments},
    {"conv128x128", DType::f16, {128, 128, 64, 32}},
    {"conv64x128", DType::f16, {64, 128, 64, 32}},
    {"conv64x64", DType::f16, {64, 64, 32, 32}},
    {"conv32x64", DType::f16, {32, 64, 16, 32}},
    {"conv32x32", DType::f16, {32, 32, 16, 16}},
    {"conv16x32", DType::f16, {16, 32, 8, 8}},  // for matrices of 8 rows in few registers
    {"conv8_gemvf16x2", DType::i8, {32, 16, 32, 16}, ConvFamily::fragments},
    {"conv8_gemvf8x2", DType::i8, {32, 8, 32, 8}, ConvFamily::fragments},
    {"conv8_gemvf8", DType::i8, {16, 8, 16, 8}, ConvFamily::fragments},
    {"conv8_128x128", DType::i8, {128, 128, 64, 32}},
    {"conv8_64x128", DType::i8, {64, 128, 64, 32}},
    {"conv8_64x64", DType::i8, {64, 64, 32, 32}},
    {"conv8_32x64", DType::i8, {32, 64, 16, 32}},
    {"conv8_32x32", DType::i8, {32, 32, 16, 16}},
    {"conv8_16x32", DType::i8, {16, 32, 8, 8}},  // for matrices of 8 rows, which a CPU driver compiles in seconds
    // Dot products.
    {"conv_dot64x64", DType::i8, {64, 64, 8, 4}, ConvFamily::dot},
    {"conv_dot32x32", DType::i8, {32, 32, 4, 4}, ConvFamily::dot},
    {"conv_dot2x4", DType::i8, {32, 32, 2, 4}, ConvFamily::dot},  // where registers are fewest
};
// Kernels of NCHW convolutions (ops/conv/kernels.h). The last one computes what channels-last kernels can, too.
constexpr std::string_view kTiled[] = {"conv_tiled2x4", "conv_tiled1x4", "conv_tiled"},
                           kDirect[] = {"conv_direct", "conv_depthwise"};

// The linear layer's kernel of the same structure, and its sizes; only of fragments.
const LinearKernel& as_linear(const ConvKernel& kernel) {
  const Input input = kernel.x == DType::f32 ? Input::splits : Input::floats;
  const auto same = [&](const LinearKernel& each) {
    return each.family == Family::gemv_fragments && each.input == input && each.rows == kernel.tile.bn &&
           each.panels * kPanelRows == kernel.tile.bm;
  };
  return *std::ranges::find_if(linear_kernels(), same);
}

LinearShape as_linear(const ConvShape& s) {
  return {.m = s.pixels,
          .n = s.channels,
          .k = ceil_div(s.k_groups * 8, kTileColumns) * kTileColumns,
          .weight = s.x == DType::f16 ? WeightType::f16 : WeightType::f32,
          .dtype = s.x,
          .split_weight = true};
}

std::string size_unsupported_reason(const ConvKernel& kernel, const Features& features) {
  const uint32_t lanes = conv_lanes(kernel, features), bytes = conv_shared_bytes(kernel, features);
  if (lanes <= features.max_invocations && bytes <= features.max_shared_bytes) return "";
  return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", lanes, bytes,
                features.max_invocations, features.max_shared_bytes);
}

// Subgroups of 32 that fill a GPU. H200, fp16, batch 32, us of tiles of 128x128, 64x128, 64x64 (channels x pixels):
//   3x3 256 -> 256, 56x56    474, 566, 712      3x3 64 -> 64, 56x56     70, 49, 56
//   3x3 128 -> 128, 28x28    46, 44, 51         1x1 128 -> 512, 28x28   33, 40, 42
//   1x1 1024 -> 256, 14x14   32, 35, 29: 784 subgroups in 98 and 196 workgroups, and 1568 in 392
//   3x3 512 -> 512, 7x7      47 and 11 for the sums of 4 splits, -, 75 (800 subgroups)
constexpr int64_t kFill = 1536;  // 132 multiprocessors
// Chunks from which on it pays to split them, and the fewest of a split. H200, batch 1, when sums were a dispatch of
// their own: 1x1 1024 -> 256, 14x14 (32 chunks) 15.1 us and 7.2 + 3.3; 3x3 64 -> 64, 56x56 (18) 9.2 and 7.6 + 3.5.
constexpr int64_t kManyChunks = 24, kLeastChunks = 8;

int64_t most_splits(const ConvShape& s) {
  return conv_chunks(s) < kManyChunks ? 1 : std::min<int64_t>(conv_chunks(s) / kLeastChunks, 16);
}

int64_t subgroups(const ConvKernel& kernel, const ConvShape& s) {
  return conv_workgroups(kernel.tile, s) * kernel.tile.subtiles() / (kernel.family == ConvFamily::dot ? 32 : 1);
}

ConvPick with_splits(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  if (kernel.family == ConvFamily::fragments) return {&kernel, 1};
  const int64_t want = ceil_div(features.filling(kFill), subgroups(kernel, s));
  return {&kernel, static_cast<uint32_t>(std::max<int64_t>(1, std::min(want, most_splits(s))))};
}

}  // namespace

int64_t conv_workgroups(const Tile& tile, const ConvShape& s) {
  return ceil_div(s.channels, tile.bm) * ceil_div(s.pixels, tile.bn);
}

int64_t conv_chunks(const ConvShape& s) {
  constexpr int64_t kChunkGroups = 4;
  return ceil_div(s.k_groups, kChunkGroups);
}

std::span<const ConvKernel> channels_last_kernels() {
  return kKernels;
}

// Where it has to read little. H200, with that dispatch and without: ResNet-50 in int8, one image (tiles of 32x32, 4
// and 9 splits) 0.417, 0.393 ms; 3x3 512 -> 512, 7x7, 32 images (128x128, 4 splits) int8 40, 57 us, fp16 59, 67.
// Between these nothing was measured.
bool last_adds(const ConvPick& pick) {
  constexpr uint64_t kMostBytes = 40 << 10;
  return uint64_t{pick.splits} * pick.kernel->tile.bm * pick.kernel->tile.bn * sizeof(float) <= kMostBytes;
}

int64_t most_split_tiles(const Features& features) {
  return features.filling(kFill);  // with_splits leaves more whole: a tile has a subgroup or more
}

bool is_conv_kernel(std::string_view name) {
  const auto is_name = [&](const ConvKernel& kernel) { return kernel.name == name; };
  return std::ranges::find(kDirect, name) != std::end(kDirect) || std::ranges::find(kTiled, name) != std::end(kTiled) ||
         std::ranges::any_of(kKernels, is_name);
}

static std::string lacks(Feature feature) {
  return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
}

static std::string matrix_unsupported_reason(const ConvKernel& kernel, const Features& features) {
  const bool bytes = kernel.x == DType::i8;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, bytes ? Feature::int8 : Feature::float16}) {
    if (!features.has(feature)) return lacks(feature);
  }
  const MatrixShape& shape = conv_matrix(kernel, features);
  const Tile& t = kernel.tile;
  if (shape.m == 0) return format("needs cooperative matrices of %s", bytes ? "signed bytes" : "fp16");
  const uint32_t chunk = bytes ? 64 : 32;
  if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 8 != 0 || chunk % shape.k != 0 || shape.k % 8 != 0)
    return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
  const uint32_t lanes = conv_lanes(kernel, features);
  if (lanes % 32 != 0 || t.bm * 4 % lanes != 0 || t.bn * 4 % lanes != 0)
    return format("does not divide among subgroups of %u", features.subgroup_size);
  if (std::string reason = size_unsupported_reason(kernel, features); !reason.empty()) return reason;
  // A driver writes every product out: lavapipe takes a minute and more to compile so many.
  const uint32_t products = t.tm / shape.m * (t.tn / shape.n) * (chunk / shape.k);
  if (products > 64) return format("would make %u products of %ux%ux%u a chunk", products, shape.m, shape.n, shape.k);
  return sums_unsupported_reason(t, features);
}

static std::string int8_fragments_unsupported_reason(const Features& features) {
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::int8, Feature::fragments_int8})
    if (!features.has(feature)) return lacks(feature);
  return "";
}

// Of a lane of dot products, in place of a subgroup: a sum, and a word of the patch.
static uint32_t sums_of_dots(const Features& features) {
  return 2 * features.subgroup_size;
}

std::string unsupported_reason(const ConvKernel& kernel, const Features& features) {
  switch (kernel.family) {
    case ConvFamily::fragments:
      if (is_split_tile(kernel)) return split_tile_unsupported_reason(kernel, features);
      if (kernel.x == DType::i8) return int8_fragments_unsupported_reason(features);
      return unsupported_reason(as_linear(kernel), as_linear({16, 16, 8, kernel.x}), features);
    case ConvFamily::matrix:
      return matrix_unsupported_reason(kernel, features);
    case ConvFamily::dot:
      break;
  }
  if (!features.has(Feature::int_dot)) return lacks(Feature::int_dot);
  if (std::string reason = size_unsupported_reason(kernel, features); !reason.empty()) return reason;
  return sums_unsupported_reason(kernel.tile, features, sums_of_dots(features));
}

const MatrixShape& conv_matrix(const ConvKernel& kernel, const Features& features) {
  return kernel.x == DType::i8 ? features.matrix_s8[0] : features.matrix_f16[0];
}

uint32_t conv_lanes(const ConvKernel& kernel, const Features& features) {
  return kernel.tile.subtiles() * (kernel.family == ConvFamily::dot ? 1 : features.subgroup_size);
}

// Of conv/fragments.glslh: 20 words for 16 sums of each pixel, the stage of NCHW, and 12 words for four channels.
static int64_t fragment_shared_bytes(const ConvKernel& kernel, int64_t slots) {
  const int64_t bm = kernel.tile.bm, bn = kernel.tile.bn;
  return slots * bm * bn * 5 + bm * (bn + 1) * 4 + bm * 12;
}

// As few tiles of 128 bytes of columns for a subgroup as leave so many subgroups. H200, us: int8, of 1, 2 and 4 tiles,
// when each slot still loaded one more: 16x2 1x1 1024 -> 256, 14x14 6.1, 6.3, 7.6; 1024 -> 512 (208
// workgroups) 7.7, 7.5, 7.9; 3x3 128 -> 128, 28x28 (196) 8.5, 8.2, 9.2; 8x2 3x3 512 -> 512, 7x7 (112) -, 8.4, 8.9; 3x3
// 256 -> 256, 14x14 (200) 10.7, 8.9, 9.2; gemvf8 1x1 2048 -> 1000, one pixel 5.7, 6.0, 6.2. fp16, all of ResNet-50 at
// 3000 and 6000, and in powers of two as gemv_lanes has it: 404, 426, 417.
static int64_t slots_of(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  const int64_t tiles = ceil_div(s.k_groups, 8);
  int64_t most = features.filling(kernel.x == DType::f16 ? 3000 : kernel.tile.bn == 16 ? 1536 : 2048);
  most = std::clamp<int64_t>(most / conv_workgroups(kernel.tile, s), 1, std::min(32u, features.max_invocations / 32));
  while (most > 1 && fragment_shared_bytes(kernel, most) > features.max_shared_bytes) --most;
  return ceil_div(tiles, ceil_div(tiles, most));
}

uint32_t fragment_lanes(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  if (is_split_tile(kernel)) return split_tile_lanes(kernel, s, features);
  if (kernel.x != DType::f32) return static_cast<uint32_t>(32 * slots_of(kernel, s, features));
  uint32_t lanes = gemv_lanes(as_linear(kernel), s.pixels, s.channels, s.k_groups * 8, features);
  while (lanes > 32 && fragment_shared_bytes(kernel, lanes / 32) > features.max_shared_bytes) lanes /= 2;
  return lanes;
}

// Rows of 64 bytes and 16 of padding, half filled for matrices of 8 bytes; planes of x are 32 rows of pixels and 16
// bytes; and what a subgroup puts out at a time, whose rows have 32 or 16 bytes more.
uint32_t conv_shared_bytes(const ConvKernel& kernel, const Features& features) {
  const Tile& t = kernel.tile;
  if (kernel.family == ConvFamily::dot) return (t.bm + t.bn) * 80;
  const MatrixShape& shape = conv_matrix(kernel, features);
  const bool bytes = kernel.x == DType::i8;
  const uint32_t row = (bytes && shape.k == 8 ? 128 : 64) + 16;
  const uint32_t x = bytes ? t.bn * row : std::max(t.bn * row, 32 * (t.bn / 8 + 1) * 16);
  return std::max(t.bm * row + x, t.subtiles() * 4 * (shape.m * t.tn + std::max(8 * shape.m, 4 * t.tn)));
}

namespace {

// Of dot products: sums, and the patch's words in each lane. The least tile is for where registers are fewest (Mali,
// ResNet-50, spills and fills of a pipeline: conv_dot32x32 4 to 116, conv_dot2x4 none), the next one for all others.
bool holds_dots(const Tile& t, const Features& features) {
  if (takes_least_tiles(features) || t.tm < 4) return takes_least_tiles(features) && t.tm < 4;
  return t.tm == 4 || holds_sums(t, features, sums_of_dots(features));
}

// Of matrices, or of dot products: the largest tile that fills the device as it is; else the largest one that does so
// in splits; else the least.
ConvPick pick_of(ConvFamily family, const ConvShape& s, const Features& features) {
  const ConvKernel* least = nullptr;
  for (const bool split : {false, true}) {
    for (const ConvKernel& kernel : kKernels) {
      if (kernel.family != family || kernel.x != s.x || !unsupported_reason(kernel, features).empty()) continue;
      const Tile& t = kernel.tile;
      const bool held = family == ConvFamily::matrix ? holds_matrices(t, features) : holds_dots(t, features);
      const bool last_resort = kernel.x == DType::f16 && t.tm < 16;
      if (!held || (last_resort && least != nullptr)) continue;
      least = &kernel;
      const bool half_empty = s.channels <= t.bm / 2 || s.pixels <= t.bn / 2, small = t.bm < 64;
      if (!half_empty && !(small && conv_chunks(s) >= kManyChunks) &&  // small tiles of many chunks: slower than splits
          subgroups(kernel, s) * (split ? most_splits(s) : 1) >= features.filling(kFill))
        return with_splits(kernel, s, features);
    }
  }
  return least == nullptr ? ConvPick{} : with_splits(*least, s, features);
}

// Of bytes. H200, ResNet-50, us by these and by tiles, some in splits: 1x1 1024 -> 256, 14x14 6.1, 9.2; 512 -> 128,
// 28x28 6.3, 6.9; 3x3 128 -> 128, 28x28 8.2, 9.0; 3x3 512 -> 512, 7x7 8.4, 10.0. Others: few columns, 256 -> 1024,
// 14x14 6.6, 6.1; many outputs, 3x3 64 -> 64, 56x56 7.6, 7.2; 512 -> 256, 28x28 7.2, 7.2.
bool is_few_bytes(const ConvShape& s, const Features& features) {
  return s.k_groups >= 32 && s.channels * s.pixels <= features.filling(1 << 17);
}

// The largest with 100 workgroups, but 8 pixels with no more than one row panel. H200, us of 16x2 and 8x2: 1x1 1024 ->
// 256, 14x14 (104 workgroups) 6.1, 6.6; 3x3 512 -> 512, 7x7 (64) 9.8, 8.4; one pixel 2048 -> 1000 7.5, 6.6, gemvf8 5.7.
bool suits_bytes(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  if (s.pixels <= 8) return kernel.tile.bm == kPanelRows;
  return kernel.tile.bn == 8 || conv_workgroups(kernel.tile, s) >= features.filling(100);
}

// Few pixels: where a linear layer of the same sizes would take fragments; all of fp32, many pixels by
// ops/conv/split_tiles.h.
// H200, ResNet-50's 1x1 layers of fp16, us by these and by tiles in splits: 196 pixels 1024 -> 256 5.3, 10.5;
// 256 -> 1024 5.1, 7.5; 49 pixels 2048 -> 512 6.2, 11.5. fp32, us of 8 pixels and 32 channels, of 16 and 32, and of
// conv/tiled.glslh: 3x3 64 -> 64, 56x56 14.7, 13.1, 24.9; 8 images 56.4, 51.4, 93.6; 3x3 256 -> 256, 14x14, 8 images
// 58.9, 61.3, 130; all of ResNet-18 353, 371, 1560, and of ResNet-50 664, 700, 2684.
const ConvKernel* pick_fragments(const ConvShape& s, const Features& features) {
  const bool bytes = s.x == DType::i8, packed = s.packing == ConvShape::Packing::fragments;
  if (s.packing == ConvShape::Packing::chunks || (bytes && !packed && !is_few_bytes(s, features))) return nullptr;
  if (!features.has(bytes ? Feature::fragments_int8 : Feature::fragments)) return nullptr;
  const auto find = [&](const auto& is_it) -> const ConvKernel* {
    const auto found = std::ranges::find_if(kKernels, [&](const ConvKernel& each) {
      return each.family == ConvFamily::fragments && each.x == s.x && is_it(each);
    });
    return found != std::end(kKernels) && unsupported_reason(*found, features).empty() ? &*found : nullptr;
  };
  if (bytes) return find([&](const ConvKernel& each) { return suits_bytes(each, s, features); });
  if (s.x == DType::f16) {
    const LinearKernel& linear = pick_linear(as_linear(s), features);
    const ConvKernel* same = find([&](const ConvKernel& each) { return as_linear(each).name == linear.name; });
    if (same != nullptr || !packed) return same;
  }
  const ConvKernel* tile = s.x == DType::f32 ? pick_split_tile(s, features) : nullptr;
  return tile != nullptr ? tile : find([](const ConvKernel&) { return true; });
}

}  // namespace

ConvPick pick_conv(const ConvShape& s, const Features& features) {
  if (std::ranges::find(kTiled, features.kernel) != std::end(kTiled)) return {};
  for (const ConvKernel& kernel : kKernels) {
    if (kernel.x != s.x || kernel.name != features.kernel) continue;
    const bool fragments = kernel.family == ConvFamily::fragments;
    if (s.packing == (fragments ? ConvShape::Packing::chunks : ConvShape::Packing::fragments)) continue;
    const std::string reason = unsupported_reason(kernel, features);
    if (!reason.empty())
      fail(Code::InvalidArgument, Stage::plan, "kernel", "kernel '%s' cannot run here: it %s", features.kernel.c_str(),
           reason.c_str());
    return with_splits(kernel, s, features);
  }
  // Whose driver compiles matrices slowly, and runs them, and dot products, as other products.
  if (features.cpu) return {};
  if (const ConvKernel* kernel = pick_fragments(s, features)) return {kernel, 1};
  const ConvPick matrices = pick_of(ConvFamily::matrix, s, features);
  return matrices.kernel != nullptr ? matrices : pick_of(ConvFamily::dot, s, features);
}

}  // namespace pumice::engine
