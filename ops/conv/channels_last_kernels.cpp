// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last_kernels.h"

#include <algorithm>

#include "base/divide.h"
#include "ops/linear/pick.h"

namespace pumice::engine {
namespace {

// Of a dtype, large to small, matrices before dot products.
constexpr ConvKernel kKernels[] = {
    {"conv128x128", false, {128, 128, 64, 32}},
    {"conv64x128", false, {64, 128, 64, 32}},
    {"conv64x64", false, {64, 64, 32, 32}},
    {"conv32x64", false, {32, 64, 16, 32}},
    {"conv32x32", false, {32, 32, 16, 16}},
    {"conv8_128x128", true, {128, 128, 64, 32}},
    {"conv8_64x128", true, {64, 128, 64, 32}},
    {"conv8_64x64", true, {64, 64, 32, 32}},
    {"conv8_32x64", true, {32, 64, 16, 32}},
    {"conv8_32x32", true, {32, 32, 16, 16}},
    {"conv8_16x32", true, {16, 32, 8, 16}},  // for matrices of 8 rows, which a CPU driver compiles in seconds
    // Dot products.
    {"conv_dot64x64", true, {64, 64, 8, 4}, true},
    {"conv_dot32x32", true, {32, 32, 4, 4}, true},
};
// Kernels of NCHW convolutions (ops/conv/kernels.h). The last one computes what channels-last kernels can, too.
constexpr std::string_view kOthers[] = {"conv_direct", "conv_depthwise", "conv_tiled"}, kTiled = "conv_tiled";

constexpr int64_t kChunkGroups = 4;

std::string size_unsupported_reason(const ConvKernel& kernel, const Features& features) {
  const uint32_t lanes = conv_lanes(kernel, features), bytes = conv_shared_bytes(kernel, features);
  if (lanes <= features.max_invocations && bytes <= features.max_shared_bytes) return "";
  return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", lanes, bytes,
                features.max_invocations, features.max_shared_bytes);
}

int64_t workgroups(const Tile& tile, const ConvShape& s) {
  return ceil_div(s.channels, tile.bm) * ceil_div(s.pixels, tile.bn);
}

int64_t chunks(const ConvShape& s) {
  return ceil_div(s.k_groups, kChunkGroups);
}

// Subgroups of 32 that fill a GPU. H200, fp16, batch 32, us of tiles of 128x128, 64x128, 64x64 (channels x pixels):
//   3x3 256 -> 256, 56x56    474, 566, 712      3x3 64 -> 64, 56x56     70, 49, 56
//   3x3 128 -> 128, 28x28    46, 44, 51         1x1 128 -> 512, 28x28   33, 40, 42
//   1x1 1024 -> 256, 14x14   32, 35, 29: 784 subgroups in 98 and 196 workgroups, and 1568 in 392
//   3x3 512 -> 512, 7x7      47 and 11 for the sums of 4 splits, -, 75 (800 subgroups)
constexpr int64_t kFill = 1536;  // 132 multiprocessors
// Chunks from which on it pays to split them, and the fewest of a split: sums cost a second dispatch. H200, batch 1:
// 1x1 1024 -> 256, 14x14 (32 chunks) 15.1 us and 7.2 + 3.3; 3x3 64 -> 64, 56x56 (18) 9.2 and 7.6 + 3.5.
constexpr int64_t kManyChunks = 24, kLeastChunks = 8;

int64_t most_splits(const ConvShape& s) {
  return chunks(s) < kManyChunks ? 1 : std::min<int64_t>(chunks(s) / kLeastChunks, 16);
}

int64_t subgroups(const ConvKernel& kernel, const ConvShape& s) {
  return workgroups(kernel.tile, s) * kernel.tile.subtiles() / (kernel.dot ? 32 : 1);
}

ConvPick with_splits(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  const int64_t want = ceil_div(features.filling(kFill), subgroups(kernel, s));
  return {&kernel, static_cast<uint32_t>(std::max<int64_t>(1, std::min(want, most_splits(s))))};
}

}  // namespace

std::span<const ConvKernel> channels_last_kernels() {
  return kKernels;
}

bool is_conv_kernel(std::string_view name) {
  const auto is_name = [&](const ConvKernel& kernel) { return kernel.name == name; };
  return std::ranges::find(kOthers, name) != std::end(kOthers) || std::ranges::any_of(kKernels, is_name);
}

std::string unsupported_reason(const ConvKernel& kernel, const Features& features) {
  if (kernel.dot) {
    if (features.has(Feature::int_dot)) return size_unsupported_reason(kernel, features);
    return format("needs the feature '%s', which the device lacks or which was switched off", name(Feature::int_dot));
  }
  for (const Feature feature :
       {Feature::coopmat, Feature::memory_model, kernel.integers ? Feature::int8 : Feature::float16}) {
    if (!features.has(feature))
      return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
  }
  const MatrixShape& shape = conv_matrix(kernel, features);
  const Tile& t = kernel.tile;
  if (shape.m == 0) return format("needs cooperative matrices of %s", kernel.integers ? "signed bytes" : "fp16");
  const uint32_t chunk = kernel.integers ? 64 : 32;
  if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 8 != 0 || chunk % shape.k != 0 || shape.k % 8 != 0)
    return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
  const uint32_t lanes = conv_lanes(kernel, features);
  if (lanes % 32 != 0 || t.bm * 4 % lanes != 0 || t.bn * 4 % lanes != 0)
    return format("does not divide among subgroups of %u", features.subgroup_size);
  if (std::string reason = size_unsupported_reason(kernel, features); !reason.empty()) return reason;
  // A driver writes every product out: lavapipe takes a minute and more to compile so many.
  const uint32_t products = t.tm / shape.m * (t.tn / shape.n) * (chunk / shape.k);
  if (products > 64) return format("would make %u products of %ux%ux%u a chunk", products, shape.m, shape.n, shape.k);
  return "";
}

const MatrixShape& conv_matrix(const ConvKernel& kernel, const Features& features) {
  return kernel.integers ? features.matrix_s8[0] : features.matrix_f16[0];
}

uint32_t conv_lanes(const ConvKernel& kernel, const Features& features) {
  return kernel.tile.subtiles() * (kernel.dot ? 1 : features.subgroup_size);
}

// Rows of 64 bytes and 16 of padding, half filled for matrices of 8 bytes; planes of x are 32 rows of pixels and 16
// bytes; and what a subgroup puts out at a time, whose rows have 32 or 16 bytes more.
uint32_t conv_shared_bytes(const ConvKernel& kernel, const Features& features) {
  const Tile& t = kernel.tile;
  if (kernel.dot) return (t.bm + t.bn) * 80;
  const MatrixShape& shape = conv_matrix(kernel, features);
  const uint32_t row = (kernel.integers && shape.k == 8 ? 128 : 64) + 16;
  const uint32_t x = kernel.integers ? t.bn * row : std::max(t.bn * row, 32 * (t.bn / 8 + 1) * 16);
  return std::max(t.bm * row + x, t.subtiles() * 4 * (shape.m * t.tn + std::max(8 * shape.m, 4 * t.tn)));
}

namespace {

// Of matrices, or of dot products: the largest tile that fills the device as it is; else the largest one that does so
// in splits; else the least.
ConvPick pick_of(bool dot, const ConvShape& s, const Features& features) {
  const ConvKernel* least = nullptr;
  for (const bool split : {false, true}) {
    for (const ConvKernel& kernel : kKernels) {
      if (kernel.dot != dot || kernel.integers != s.integers || !unsupported_reason(kernel, features).empty()) continue;
      const uint32_t sums = dot ? 2 * features.subgroup_size : 1;  // as many as the words of the patch, in each lane
      if (!holds_sums(kernel.tile, features, sums)) continue;
      least = &kernel;
      const Tile& t = kernel.tile;
      const bool half_empty = s.channels <= t.bm / 2 || s.pixels <= t.bn / 2, small = t.bm < 64;
      if (!half_empty && !(small && chunks(s) >= kManyChunks) &&  // small tiles of many chunks: slower than splits
          subgroups(kernel, s) * (split ? most_splits(s) : 1) >= features.filling(kFill))
        return with_splits(kernel, s, features);
    }
  }
  return least == nullptr ? ConvPick{} : with_splits(*least, s, features);
}

}  // namespace

ConvPick pick_conv(const ConvShape& s, const Features& features) {
  if (features.kernel == kTiled) return {};
  for (const ConvKernel& kernel : kKernels) {
    if (kernel.integers != s.integers || kernel.name != features.kernel) continue;
    const std::string reason = unsupported_reason(kernel, features);
    if (!reason.empty())
      fail(Code::InvalidArgument, Stage::plan, "kernel", "kernel '%s' cannot run here: it %s", features.kernel.c_str(),
           reason.c_str());
    return with_splits(kernel, s, features);
  }
  // Whose driver compiles matrices slowly, and runs them, and dot products, as other products.
  if (features.cpu) return {};
  const ConvPick matrices = pick_of(false, s, features);
  return matrices.kernel != nullptr ? matrices : pick_of(true, s, features);
}

}  // namespace pumice::engine
