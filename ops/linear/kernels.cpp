// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/kernels.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/divide.h"
#include "base/nearest.h"
#include "glsl/include/core/modes.glslh"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/int8_kernels.h"
#include "ops/linear/packed_weight.h"  // quantized
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kPairRows = 4;

constexpr LinearKernel kKernels[] = {
    {"gemv1", Family::gemv, 1, 1},
    {"gemv2", Family::gemv, 2, 1},
    {"gemv4", Family::gemv, 4, 1},
    {"gemv8", Family::gemv, 8, 1},
    {"gemv1x2", Family::gemv, 1, 2},
    {"gemv2x2", Family::gemv, 2, 2},
    {"gemv4x2", Family::gemv, 4, 2},
    // Large to small; tile32x64 fits every device (128 invocations, 16 KiB).
    {"tile128x128", Family::tiled, 0, 0, {128, 128, 8, 8}},  // 256 invocations, 20 KiB
    {"tile64x128", Family::tiled, 0, 0, {64, 128, 8, 8}},    // 15 KiB
    {"tile64x64", Family::tiled, 0, 0, {64, 64, 8, 4}},
    {"tile32x64", Family::tiled, 0, 0, {32, 64, 4, 4}},
    {"tile2x4", Family::tiled, 0, 0, {32, 64, 2, 4}},  // 256 invocations; where registers are fewest, as dot_tile2x4
    {"matrix128x128", Family::matrix, 0, 0, {128, 128, 64, 64}},
    {"matrix64x64", Family::matrix, 0, 0, {64, 64, 32, 32}},
    {"matrix32x32", Family::matrix, 0, 0, {32, 32, 16, 16}},
    {"matrix16x32", Family::matrix, 0, 0, {16, 32, 8, 8}},  // for matrices of 8 rows in few registers, as int8*_16x32
    {"fragments64x256", Family::fragments, 0, 0, {64, 256, 64, 64}},
    {"fragments64x128", Family::fragments, 0, 0, {64, 128, 64, 32}},
    {"split64x256", Family::fragments, 0, 0, {64, 256, 64, 32}, Input::split},
    {"split64x128", Family::fragments, 0, 0, {64, 128, 64, 32}, Input::split},
    {"split_matrix128x128", Family::matrix, 0, 0, {128, 128, 64, 32}, Input::split},
    {"split_matrix64x128", Family::matrix, 0, 0, {64, 128, 64, 32}, Input::split},
    {"split_matrix64x64", Family::matrix, 0, 0, {64, 64, 32, 32}, Input::split},
    {"split_matrix32x32", Family::matrix, 0, 0, {32, 32, 16, 16}, Input::split},
    {"gemvf8", Family::gemv_fragments, 8, 1},
    {"gemvf8x2", Family::gemv_fragments, 8, 2},
    {"gemvf16", Family::gemv_fragments, 16, 1},
    {"gemvf16x2", Family::gemv_fragments, 16, 2},
    {"gemvf16x6", Family::gemv_fragments, 16, 6, {}, Input::floats, 1, 3},
    {"gemvf16x8", Family::gemv_fragments, 16, 8, {}, Input::floats, 1, 4},
    {"gemvf16x12", Family::gemv_fragments, 16, 12, {}, Input::floats, 1, 6},
    {"split_gemvf4", Family::gemv_fragments, kPairRows, 1, {}, Input::splits},
    {"split_gemvf4x2", Family::gemv_fragments, kPairRows, 2, {}, Input::splits},
    {"split_gemvf8", Family::gemv_fragments, 8, 1, {}, Input::splits},
    {"split_gemvf8x2", Family::gemv_fragments, 8, 2, {}, Input::splits},
    {"split_gemvf8x4", Family::gemv_fragments, 8, 4, {}, Input::splits},
    {"split_gemvf16x2", Family::gemv_fragments, 16, 2, {}, Input::splits},
    {"split_gemvf16x4", Family::gemv_fragments, 16, 4, {}, Input::splits},
    {"split_gemvf16x6", Family::gemv_fragments, 16, 6, {}, Input::splits, 1, 3},
    {"split_gemvf16x8", Family::gemv_fragments, 16, 8, {}, Input::splits, 1, 4},
    {"split_gemvf16x12", Family::gemv_fragments, 16, 12, {}, Input::splits, 1, 6},
    {"gemvf1", Family::gemv_row, 1, 1},
    {"split_gemvf1", Family::gemv_row, 1, 1, {}, Input::splits},
    {"gemvr1", Family::gemv_rows, 1, 1},
    {"gemvr2", Family::gemv_rows, 2, 1},
    {"gemvr4", Family::gemv_rows, 4, 1},
    {"gemvr8", Family::gemv_rows, 8, 1},
    {"gemvr1x2", Family::gemv_rows, 1, 2},
    {"dot1", Family::dot_gemv, 1, 1, {}, Input::x},
    {"dot1x2", Family::dot_gemv, 1, 2, {}, Input::x},
    {"dot1x4", Family::dot_gemv, 1, 4, {}, Input::x},
    {"dot1x7", Family::dot_gemv, 1, 7, {}, Input::x},
    {"dot2", Family::dot_gemv, 2, 1, {}, Input::x},
    {"dot4", Family::dot_gemv, 4, 1, {}, Input::x},
    {"dotw1", Family::dot_gemv, 1, 1, {}, Input::words},
    {"dotw4", Family::dot_gemv, 4, 1, {}, Input::words},
    {"dotw8", Family::dot_gemv, 8, 1, {}, Input::words},
    {"dot_tile128x128", Family::dot_tiled, 0, 0, {128, 128, 8, 8}, Input::words},
    {"dot_tile64x128", Family::dot_tiled, 0, 0, {64, 128, 8, 8}, Input::words},
    {"dot_tile64x64", Family::dot_tiled, 0, 0, {64, 64, 8, 4}, Input::words},
    {"dot_tile32x64", Family::dot_tiled, 0, 0, {32, 64, 4, 4}, Input::words},
    {"dot_tile2x4", Family::dot_tiled, 0, 0, {32, 64, 2, 4}, Input::words},
    {"int8_128x128", Family::matrix_int8, 0, 0, {128, 128, 64, 64}, Input::words},
    {"int8_128x128d2", Family::matrix_int8, 0, 0, {128, 128, 64, 64}, Input::words, 2},
    {"int8_64x128", Family::matrix_int8, 0, 0, {64, 128, 64, 32}, Input::words},
    {"int8_64x64", Family::matrix_int8, 0, 0, {64, 64, 32, 32}, Input::words},
    {"int8_32x32", Family::matrix_int8, 0, 0, {32, 32, 16, 16}, Input::words},
    {"int8_16x32", Family::matrix_int8, 0, 0, {16, 32, 8, 8}, Input::words},
    {"int8_16x16d2", Family::matrix_int8, 0, 0, {16, 16, 16, 8}, Input::words, 2},
    {"int8g_128x128", Family::matrix_int8_groups, 0, 0, {128, 128, 64, 32}, Input::words},
    {"int8g_64x128", Family::matrix_int8_groups, 0, 0, {64, 128, 64, 32}, Input::words},
    {"int8g_32x32", Family::matrix_int8_groups, 0, 0, {32, 32, 16, 16}, Input::words},
    {"int8g_16x32n16", Family::matrix_int8_groups, 0, 0, {16, 32, 8, 16}, Input::words},  // for matrices of 16 columns
    {"int8g_16x32", Family::matrix_int8_groups, 0, 0, {16, 32, 8, 8}, Input::words},
};

}  // namespace

bool takes_pairs(const LinearKernel& kernel) {
  return kernel.input == Input::splits && kernel.rows == kPairRows;
}

bool reads_split_weight(const LinearKernel& kernel, WeightType weight) {
  const bool tiles = kernel.family == Family::fragments && kernel.input == Input::split;
  return weight == WeightType::f32 && (tiles || kernel.input == Input::splits);
}

bool fits(const LinearKernel& kernel, WeightType weight, const Features& features) {
  return tile_lanes(kernel, features) <= features.max_invocations &&
         tile_shared_bytes(kernel, weight, features) <= features.max_shared_bytes;
}

std::span<const LinearKernel> linear_kernels() {
  return kKernels;
}

// A pick asks for several, at each new shape of each product: only an error makes the list.
const LinearKernel& linear_kernel(std::string_view name) {
  for (const LinearKernel& kernel : kKernels)
    if (kernel.name == name) return kernel;
  std::vector<std::string_view> known;
  for (const LinearKernel& kernel : kKernels) known.push_back(kernel.name);
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::plan, "kernel", "no kernel '%s': did you mean '%s'? There are %s",
       printable(name).c_str(), std::string(nearest(name, known)).c_str(), list.c_str());
}

constexpr int64_t kMostLayerNormColumns = 1024;  // which lanes load at once

// Each workgroup norms all rows again. H200, us with the norm inside and in front: 8 x 2048 -> 3072 8.3, 10.5 (3.1 M
// elements in all workgroups); 4 x 4096 -> 6144 18.3, 17.1 (6.3 M); 8 x 2048 -> 16384 19.0, 14.8 (8.4 M); 4 x 4096 ->
// 28672 47.3, 29.8 (15 M).
constexpr int64_t kMostNormed = 4 << 20;
// lavapipe, 2 cores, processor time, int4 in fp16, us with the norm inside and in front, by the elements that all
// workgroups norm: 128 -> 384 (3,072) 24.4, 24.2; 512 -> 1536 (49,152) 281, 203 to 237; 1024 -> 4096 (262,144) 1003,
// 646: some 1.4 ns an element. The dispatch in front costs more than that by the clock where threads sleep meanwhile.
constexpr int64_t kMostNormedOnCpu = 1 << 13;

static bool rows_fuse_norm(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const uint64_t row = static_cast<uint64_t>(ceil_div(s.k, 64)) * 64 * device_bytes(s.dtype);
  return kernel.rows == 1 && s.m == 1 && !s.textures &&
         s.k * ceil_div(ceil_div(s.n, 16), kernel.panels) <= kMostNormedOnCpu &&
         row + kernel.panels * 64 + 32 <= features.max_shared_bytes;
}

bool fuses_norm(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (kernel.family == Family::gemv_rows) return rows_fuse_norm(kernel, s, features);
  if (kernel.input == Input::splits) return false;
  if (kernel.family == Family::gemv_row)
    return s.m == 1 && gemv_row_shared_bytes(kernel, s.k, features) + 128 <= features.max_shared_bytes;
  const bool matrices = kernel.family == Family::gemv_fragments;
  const int64_t most = kernel.family == Family::gemv ? 1 : matrices && kernel.rows == 8 ? 8 : 0;
  if (s.textures || s.m < 1 || s.m > most) return false;
  if (s.m > 1 && s.m * s.k * ceil_div(ceil_div(s.n, 16), kernel.panels) > kMostNormed) return false;
  // With the padding of glsl/include/linear/rms_norm.glslh.
  const uint64_t row = (static_cast<uint64_t>(ceil_div(s.k, 64)) * 64 + 32) * device_bytes(s.dtype);
  const uint64_t lanes = gemv_lanes(kernel, s.m, s.n, s.k, features);
  const uint64_t others = matrices ? s.m * kernel.panels * lanes * 2 + 128 : kernel.panels * lanes * 8 + lanes * 4 + 16;
  return s.m * row + others <= features.max_shared_bytes;
}

// H200, fp32, us of 384 -> 1536 in ViT-small (`pumice-rt profile`): 8.5 to 9.5, and 5.1 + 6.1 with the norm in front.
bool centers_row(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  return kernel.family == Family::gemv && s.k <= kMostLayerNormColumns && s.k % 8 == 0 &&
         fuses_norm(kernel, s, features);
}

// Elements that all workgroups norm, of all readers, where each reads its rows for their moments. H200, ms of whole
// models in fp16 at batch 1, with no norm inside; with those in front of one product, 384 -> 1536 (3.6 M elements); and
// with those in front of three, 384 -> 384 (5.4 M), too. ViT-small 0.565, 0.552, 0.529; ConvNeXt-tiny, which has the
// first kind only, 0.566, 0.546. One row in ViT-small's last block: 0.434, 0.432. In fp32, split, 197 x 384 -> 1536
// took 12.3 us, and 21 with such a norm inside.
constexpr int64_t kMostLayerNormed = 6 << 20;
constexpr uint32_t kMostNormReaders = 8;  // that were measured to gain from moments
constexpr uint32_t kNormedBuffers = 13;   // of linear_gemv_fragments[...,normed]

static bool takes_layer_norms(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (kernel.family != Family::gemv_fragments || features.max_storage_buffers < kNormedBuffers) return false;
  if (takes_pairs(kernel) || kernel.own_panels() > 2) return false;
  const int64_t least = kernel.input == Input::splits ? 2 : 1;  // rows; one row of fp32 has not been proved
  if (s.textures || s.integers || s.m < least || s.k % 64 != 0) return false;
  return (kernel.input == Input::floats && s.dtype == DType::f16) ||
         (kernel.input == Input::splits && (s.weight != WeightType::f32 || s.split_weight));
}

bool reads_patches(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  return takes_layer_norms(kernel, s, features);
}

bool leaves_moments(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  return takes_layer_norms(kernel, s, features) && s.n % MOMENTS_COLUMNS == 0;
}

bool fuses_layer_norm(const LinearKernel& kernel, const LinearShape& s, MomentsOf from, uint32_t readers,
                      const Features& features) {
  if (!takes_layer_norms(kernel, s, features) || s.k > kMostLayerNormColumns) return false;
  if (from == MomentsOf::left) return readers <= kMostNormReaders;
  return s.dtype == DType::f16 &&
         s.m * s.k * ceil_div(ceil_div(s.n, 16), kernel.panels) * readers <= features.filling(kMostLayerNormed);
}

bool fuses_residual_norm(const LinearKernel& kernel, const LinearShape& s, MomentsOf from, uint32_t readers,
                         const Features& features) {
  return takes_layer_norms(kernel, s, features) && s.n % MOMENTS_COLUMNS == 0 && s.n <= kMostLayerNormColumns &&
         from == MomentsOf::left && readers <= kMostNormReaders;
}

const LinearKernel* gated_kernel(const LinearKernel& kernel) {
  if (kernel.family == Family::matrix || kernel.family == Family::fragments)
    return kernel.tile.tn % 32 == 0 ? &kernel : nullptr;
  if (kernel.input == Input::splits) return nullptr;  // has not been measured so
  if (kernel.family == Family::gemv_row) return &kernel;
  const Family passes[] = {Family::gemv, Family::gemv_fragments, Family::gemv_rows};
  if (std::find(std::begin(passes), std::end(passes), kernel.family) == std::end(passes)) return nullptr;
  for (const LinearKernel& other : kKernels)
    if (other.family == kernel.family && other.rows == kernel.rows && other.panels == 2) return &other;
  return nullptr;
}

uint32_t tile_lanes(const LinearKernel& kernel, const Features& features) {
  return kernel.tile.subtiles() * (kernel.family == Family::tiled ? 1 : features.subgroup_size);
}

uint32_t tile_shared_bytes(const LinearKernel& kernel, WeightType weight, const Features& features) {
  const Tile& t = kernel.tile;
  if (kernel.family == Family::tiled) return (t.bm + t.bn) * 20 * 4;  // rows of 16 floats and 4 of padding
  // What subgroups put out at a time: rows of sums and 8 of padding.
  const uint32_t stage = t.subtiles() * features.matrix_f16[0].m * (t.tn + 8) * 4;
  if (kernel.family == Family::matrix) {  // rows of 32 halves and 8; and scales
    if (kernel.input != Input::split) return std::max((t.bm + t.bn) * 80, stage);
    return std::max((2 * t.bm + t.bn * (weight == WeightType::f32 ? 2 : 1)) * 80, stage) + t.bn * 4;
  }
  // Two buffers of rows of 64 halves and 8; or one of both parts of a split x, or two of both of 32 halves and 8.
  return std::max(2 * t.bm * (weight == WeightType::f32 ? 160 : 144), t.subtiles() * 16 * (t.tn + 8) * 4);
}

Input form_of(const LinearKernel& kernel, const LinearShape& shape) {
  const bool halves = kernel.family == Family::gemv_fragments && kernel.input == Input::floats;
  return halves && shape.dtype != DType::f16 ? Input::halves : kernel.input;
}

namespace {

// Of a device that has the features.
std::string row_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (s.integers) return "takes no integers";
  if (s.dtype != DType::f16 && kernel.input != Input::splits)
    return format("computes in fp16, not in %s", name(s.dtype));
  if (!quantized(s.weight)) return "takes quantized weights";
  if (s.k % 64 != 0) return "takes whole tiles of 64 columns";
  if (s.group % 32 != 0) return "takes one scale a row, or groups that are multiples of 32";
  const uint64_t bytes = gemv_row_shared_bytes(kernel, s.k, features);
  if (bytes > features.max_shared_bytes)
    return format("needs %llu bytes of shared memory, the device has %u", static_cast<unsigned long long>(bytes),
                  features.max_shared_bytes);
  return "";
}

// Of glsl/include/linear/shared_rows.glslh.
std::string shared_rows_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (s.integers) return "takes no integers";
  if (s.k % 64 != 0) return "takes whole tiles of 64 columns";
  const uint32_t lanes = gemv_lanes(kernel, s.m, s.n, s.k, features);
  const uint64_t bytes = shared_rows_bytes(kernel, s.k, features);
  if (lanes <= std::min(features.max_invocations, most_pass_lanes(features)) && bytes <= features.max_shared_bytes)
    return "";
  return format("needs %u invocations and %llu bytes of shared memory, the device has %u and %u", lanes,
                static_cast<unsigned long long>(bytes), features.max_invocations, features.max_shared_bytes);
}

// What all families with cooperative matrices need.
std::string matrix_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const Feature needed = kernel.family == Family::matrix ? Feature::coopmat : Feature::fragments;
  const bool gemv = kernel.family == Family::gemv_fragments || kernel.family == Family::gemv_row;
  const Feature adds = gemv ? Feature::subgroup_arithmetic : needed, moves = gemv ? Feature::subgroup_shuffle : needed;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, needed, adds, moves}) {
    if (!features.has(feature))
      return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
  }
  const MatrixShape& shape = features.matrix_f16[0];
  if (shape.m == 0) return "needs cooperative matrices of fp16 with fp32 sums";
  const bool whole = kernel.family == Family::gemv_fragments && s.integers;  // and scaled in fp32
  const bool split = kernel.input == Input::split || kernel.input == Input::splits;
  if (split && !features.has(Feature::split))
    return "needs the feature 'split', which `features` or the program's precision switched off";
  if (split && (s.integers || (kernel.input == Input::split && !s.may_split))) return "takes no integers";
  if (split && s.dtype != DType::f32) return "takes fp32";
  if (kernel.family == Family::gemv_row) return row_unsupported_reason(kernel, s, features);
  if (s.dtype != DType::f16 && !whole && !split) return format("computes in fp16, not in %s", name(s.dtype));
  const Tile& t = kernel.tile;
  const uint32_t lanes = tile_lanes(kernel, features);
  if (kernel.family == Family::matrix) {
    const uint32_t parts = !split ? 1 : s.weight == WeightType::f32 ? 3 : 2;
    if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 4 != 0 || 32 % shape.k != 0 || shape.k % 8 != 0)
      return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
    if (lanes % 32 != 0 || t.bm * 4 % lanes != 0 || t.bn * 2 % lanes != 0)
      return format("does not divide among subgroups of %u", features.subgroup_size);
    // A driver writes every product out: lavapipe took longer than a minute to compile 64 of 8x8x8.
    const uint32_t products = t.tm / shape.m * (t.tn / shape.n) * (32 / shape.k) * parts;
    if (products >= 64)
      return format("would make %u products of %ux%ux%u a chunk", products, shape.m, shape.n, shape.k);
    if (std::string reason = sums_unsupported_reason(t, features); !reason.empty()) return reason;
  }
  const bool quantized = s.weight == WeightType::q4 || s.weight == WeightType::q8;
  if (kernel.family == Family::gemv_fragments) {
    if (split && s.k % 64 != 0) return "takes whole tiles of 64 columns";
    if (kernel.columns > 1)
      if (std::string reason = shared_rows_unsupported_reason(kernel, s, features); !reason.empty()) return reason;
    if (split && !quantized && (takes_pairs(kernel) || kernel.own_panels() > 2)) return "takes quantized weights";
    if (split && !quantized && !s.split_weight)
      return "takes fp32 weights only of an operator that keeps them as two fp16, too";
    if (s.weight == WeightType::f32 && !split) return "takes fp16 and quantized weights";
    return quantized && s.group % 32 != 0 ? "takes one scale a row, or groups that are multiples of 32" : "";
  }
  if (kernel.family == Family::fragments && split && s.weight == WeightType::f32)
    return s.split_weight ? "" : "takes fp32 weights only of an operator that keeps them as two fp16, too";
  if (kernel.family == Family::fragments && s.weight != WeightType::q4)
    return "takes int4 weights, or fp32 as two fp16";
  if (split) return quantized && s.group % 32 != 0 ? "takes one scale a row, or groups that are multiples of 32" : "";
  if (quantized && s.group != 0 && (s.group % 8 != 0 || !s.scale_f16))
    return "takes one scale a row, or fp16 scales of groups that are multiples of 8";
  return "";
}

}  // namespace

std::string unsupported_reason(const LinearKernel& kernel, const LinearShape& shape, const Features& features) {
  if (kernel.input != Input::floats && kernel.input != Input::split && kernel.input != Input::splits)
    return int8_unsupported_reason(kernel, shape, features);
  if (kernel.family == Family::gemv) return "";
  const bool textures = shape.textures || shape.weight_texture;
  if (textures && kernel.family != Family::tiled) return "takes no textures";
  if (kernel.family == Family::gemv_rows) return "";
  if (kernel.family == Family::gemv_fragments || kernel.family == Family::gemv_row)
    return matrix_unsupported_reason(kernel, shape, features);
  if (kernel.family != Family::tiled) {
    const std::string reason = matrix_unsupported_reason(kernel, shape, features);
    if (!reason.empty()) return reason;
  }
  if (!fits(kernel, shape.weight, features)) {
    return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u",
                  tile_lanes(kernel, features), tile_shared_bytes(kernel, shape.weight, features),
                  features.max_invocations, features.max_shared_bytes);
  }
  if (kernel.family == Family::tiled) return sums_unsupported_reason(kernel.tile, features, features.subgroup_size);
  return "";
}

bool may_read(Input form, LinearShape shape, const Features& features) {
  shape.m = 1;  // what a kernel cannot do does not depend on it
  return std::any_of(std::begin(kKernels), std::end(kKernels), [&](const LinearKernel& kernel) {
    return form_of(kernel, shape) == form && unsupported_reason(kernel, shape, features).empty();
  });
}

// lavapipe, 2 cores, processor time by that of the pick, 1024 x 1024, M = 1 and 128, int4 and int8, x as it is and in 8
// bits: gemv* 1.6-12 and 2.5-10, dot* 1.8-8 and 2.2-10 (dot_tile64x128 at 128 rows 1.0-1.3), tiles 8-87 and 1.8-5.
std::string not_recommended_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (kernel.family != Family::gemv_rows) {
    const bool alone = s.textures || s.weight_texture;  // kernels for CPU drivers take none
    return features.cpu && !alone ? "is made for GPUs" : "";
  }
  if (!features.cpu) return "is made for CPU drivers";
  // gemvr8 takes 1.9 to 2.9 of gemvr1's time for one row; of gemvr8's for 128 gemvr1 2.0 to 2.7, gemvr2 1.1 to 2.3,
  // gemvr4 1.0 to 1.5.
  if (kernel.rows > std::bit_ceil(static_cast<uint64_t>(s.m))) return format("computes %u rows a pass", kernel.rows);
  if (kernel.rows * 2 < std::min<int64_t>(s.m, 8))
    return format("reads the weight %lld times", static_cast<long long>(ceil_div(s.m, kernel.rows)));
  return "";
}

}  // namespace pumice::engine
