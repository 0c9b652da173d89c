// SPDX-License-Identifier: Apache-2.0
// Kernel selection for matrix products. Every threshold says what set it.
#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "base/divide.h"
#include "base/nearest.h"
#include "ops/conv/channels_last_kernels.h"
#include "ops/linear/kernels.h"

namespace pumice::engine {
namespace {

constexpr LinearKernel kKernels[] = {
    {"gemv1", Family::gemv, 1, 1},
    {"gemv2", Family::gemv, 2, 1},
    {"gemv4", Family::gemv, 4, 1},
    {"gemv8", Family::gemv, 8, 1},
    {"gemv1x2", Family::gemv, 1, 2},
    {"gemv2x2", Family::gemv, 2, 2},
    {"gemv4x2", Family::gemv, 4, 2},
    // Large to small; the last one fits every device (128 invocations, 16 KiB).
    {"tile128x128", Family::tiled, 0, 0, {128, 128, 8, 8}},  // 256 invocations, 20 KiB
    {"tile64x128", Family::tiled, 0, 0, {64, 128, 8, 8}},    // 15 KiB
    {"tile64x64", Family::tiled, 0, 0, {64, 64, 8, 4}},
    {"tile32x64", Family::tiled, 0, 0, {32, 64, 4, 4}},
    {"matrix128x128", Family::matrix, 0, 0, {128, 128, 64, 64}},
    {"matrix64x64", Family::matrix, 0, 0, {64, 64, 32, 32}},
    {"matrix32x32", Family::matrix, 0, 0, {32, 32, 16, 16}},
    {"fragments64x256", Family::fragments, 0, 0, {64, 256, 64, 64}},
    {"fragments64x128", Family::fragments, 0, 0, {64, 128, 64, 32}},
    {"gemvf8", Family::gemv_fragments, 8, 1},
    {"gemvf8x2", Family::gemv_fragments, 8, 2},
    {"gemvf16", Family::gemv_fragments, 16, 1},
    {"gemvf16x2", Family::gemv_fragments, 16, 2},
    {"gemvr1", Family::gemv_rows, 1, 1},
    {"gemvr2", Family::gemv_rows, 2, 1},
    {"gemvr4", Family::gemv_rows, 4, 1},
    {"gemvr8", Family::gemv_rows, 8, 1},
    {"dot1", Family::dot_gemv, 1, 1, {}, Input::x},
    {"dot1x2", Family::dot_gemv, 1, 2, {}, Input::x},
    {"dot2", Family::dot_gemv, 2, 1, {}, Input::x},
    {"dot4", Family::dot_gemv, 4, 1, {}, Input::x},
    {"dotw1", Family::dot_gemv, 1, 1, {}, Input::words},
    {"dotw4", Family::dot_gemv, 4, 1, {}, Input::words},
    {"dotw8", Family::dot_gemv, 8, 1, {}, Input::words},
    {"dot_tile128x128", Family::dot_tiled, 0, 0, {128, 128, 8, 8}, Input::words},
    {"dot_tile64x128", Family::dot_tiled, 0, 0, {64, 128, 8, 8}, Input::words},
    {"dot_tile64x64", Family::dot_tiled, 0, 0, {64, 64, 8, 4}, Input::words},
    {"dot_tile32x64", Family::dot_tiled, 0, 0, {32, 64, 4, 4}, Input::words},
    {"int8_128x128", Family::matrix_int8, 0, 0, {128, 128, 64, 64}, Input::words},
    {"int8_128x128d2", Family::matrix_int8, 0, 0, {128, 128, 64, 64}, Input::words, 2},
    {"int8_64x128", Family::matrix_int8, 0, 0, {64, 128, 64, 32}, Input::words},
    {"int8_64x64", Family::matrix_int8, 0, 0, {64, 64, 32, 32}, Input::words},
    {"int8_32x32", Family::matrix_int8, 0, 0, {32, 32, 16, 16}, Input::words},
    {"int8_16x32", Family::matrix_int8, 0, 0, {16, 32, 8, 16}, Input::words},
    {"int8_16x16d2", Family::matrix_int8, 0, 0, {16, 16, 16, 8}, Input::words, 2},
    {"int8g_128x128", Family::matrix_int8_groups, 0, 0, {128, 128, 64, 32}, Input::words},
    {"int8g_64x128", Family::matrix_int8_groups, 0, 0, {64, 128, 64, 32}, Input::words},
    {"int8g_32x32", Family::matrix_int8_groups, 0, 0, {32, 32, 16, 16}, Input::words},
    {"int8g_16x32", Family::matrix_int8_groups, 0, 0, {16, 32, 8, 16}, Input::words},
};

bool fits(const LinearKernel& kernel, const Features& features) {
  return tile_lanes(kernel, features) <= features.max_invocations &&
         tile_shared_bytes(kernel, features) <= features.max_shared_bytes;
}

int64_t workgroups(const Tile& tile, int64_t batch, int64_t m, int64_t n) {
  return batch * ceil_div(m, tile.bm) * ceil_div(n, tile.bn);
}

// Fewer workgroups than this leave most of the device idle. GPU: H200, 132 multiprocessors. CPU: lavapipe on 2 cores.
int64_t fill(const Features& features) {
  return features.cpu ? 2 : 128;
}

// Up to here the GEMV wins. H200, 16 rows, 4096 -> 14336: 113 us against 203 of the best tile; 32 rows: 221 against
// 206.
constexpr int64_t kGemvRows = 16;

// Where no tile gives enough workgroups, passes of a GEMV win up to this many rows, whatever the weight, or
// multiplications: the weights are then read again, from cache. H200: 64 x 14336 -> 4096 448 us against 500, 128 rows
// 888 against 703; 256 x 1536 -> 384 27 us against 63.
constexpr int64_t kPassesRows = 64;
constexpr int64_t kPassesWork = int64_t{1} << 28;

// Rows of a pass. H200, MiniLM: 4 beat 8 up to 128 rows (128 x 384 -> 384 7.6 us against 8.4), 8 beat 4 at 256 (1536 ->
// 384 27 against 31); 16 x 4096 -> 14336 8 rows.
uint32_t pass_rows(int64_t m, int64_t n, int64_t k) {
  return m <= 128 && n * k < (int64_t{1} << 22) ? 4 : 8;
}

// Two strips a workgroup spare half of what is done for x, one leaves more workgroups. H200, 4096 -> 14336 and back,
// us: one row 18.8 and 18.9 against 19.5 and 21 of one strip, 2 rows 23.4 and 20.8 against 28.1 and 27, 4 rows 31.3
// and 27.2 against 35; 8 rows have no registers left. MiniLM (fewer invocations) loses 5 % at 16 tokens.
const LinearKernel& gemv(uint32_t rows, const LinearShape& s, const Features& features) {
  constexpr int64_t kInvocations = 1 << 16;
  const LinearKernel* one = nullptr;
  for (const LinearKernel& kernel : kKernels) {
    if (kernel.family != Family::gemv || kernel.rows != rows) continue;
    if (kernel.strips == 1) one = &kernel;
    const int64_t groups = ceil_div(ceil_div(s.n, 16), kernel.strips) * ceil_div(s.m, rows);
    if (kernel.strips == 2 && groups * gemv_lanes(kernel, s.k, features) >= kInvocations) return kernel;
  }
  return *one;
}

const LinearKernel& tile_kernel(int64_t batch, int64_t m, int64_t n, const Features& features) {
  const LinearKernel* last = nullptr;
  for (const LinearKernel& kernel : kKernels) {
    if (kernel.family != Family::tiled) continue;
    const Tile& tile = kernel.tile;
    last = &kernel;
    const bool half_empty = m <= tile.bm / 2 && tile.bm > 32;
    if (tile.bm == 128 && !features.cpu) continue;  // H200, 512 rows: 2228 us against 1911 of 64 x 128 (4096 -> 14336)
    if (fits(kernel, features) && !half_empty && workgroups(tile, batch, m, n) >= fill(features)) break;
  }
  return *last;
}

}  // namespace

// 32 for about each 8 tiles of 64 columns: a lane then has a few loads in flight. Of long rows one tile more is no
// reason to double them where workgroups are many, which is where two strips are taken: H200, 4 x 4097 -> 14336, int8
// 19.6 us against 20.6, int4 15.3 against 16.6; 4 x 4097 -> 4096 12.0 against 9.7.
static uint32_t gemv_fragment_lanes(const LinearKernel& kernel, int64_t k, const Features& features) {
  const int64_t tiles = ceil_div(k, 64);
  uint32_t slots = std::min(
      std::bit_ceil(static_cast<uint32_t>(ceil_div(tiles > 64 && kernel.strips == 2 ? tiles - 1 : tiles, 8))), 32u);
  const auto too_large = [&](uint32_t s) {
    return s * 32 > features.max_invocations || kernel.strips * kernel.rows * s * 64 > features.max_shared_bytes;
  };
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * 32;
}

// 32 for about each 6 tiles of 64 columns of its strips, so that a lane has several loads in flight and few partial
// sums are left. H200, one row: k = 4096: 256 lanes 18.8 us, 512 19.2; k = 14336: 512 lanes 18.9, 256 25 to 28.
uint32_t gemv_lanes(const LinearKernel& kernel, int64_t k, const Features& features) {
  if (kernel.family == Family::gemv_fragments) return gemv_fragment_lanes(kernel, k, features);
  if (kernel.family == Family::gemv_rows) return 8;
  const uint32_t tiles = static_cast<uint32_t>(ceil_div(k, 64)), sums = kernel.rows * kernel.strips;
  uint32_t slots = std::max(std::bit_floor(std::max(tiles / 6, 1u)), std::min(std::bit_ceil(tiles), 4u));
  const auto too_large = [&](uint32_t s) {
    return s > 16 || s * 32 > features.max_invocations || sums * s * 32 * 8 + 16 > features.max_shared_bytes;
  };
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * 32;
}

// H200: with one strip, two tiles on their way gain 2 to 4 %.
uint32_t gemv_depth(const LinearKernel& kernel, const Features& features) {
  return features.cpu || kernel.strips != 1 ? 1 : 2;
}

std::span<const LinearKernel> linear_kernels() {
  return kKernels;
}

const LinearKernel& linear_kernel(std::string_view name) {
  std::vector<std::string_view> known;
  for (const LinearKernel& kernel : kKernels) {
    if (kernel.name == name) return kernel;
    known.push_back(kernel.name);
  }
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::plan, "kernel", "no kernel '%s': did you mean '%s'? There are %s",
       printable(name).c_str(), std::string(nearest(name, known)).c_str(), list.c_str());
}

uint32_t tile_lanes(const LinearKernel& kernel, const Features& features) {
  return kernel.tile.parts() * (kernel.family == Family::tiled ? 1 : features.subgroup_size);
}

uint32_t tile_shared_bytes(const LinearKernel& kernel, const Features& features) {
  const Tile& t = kernel.tile;
  if (kernel.family == Family::tiled) return (t.bm + t.bn) * 20 * 4;  // rows of 16 floats and 4 of padding
  // What subgroups put out at a time: rows of sums and 8 of padding.
  const uint32_t stage = t.parts() * features.matrix_f16[0].m * (t.tn + 8) * 4;
  if (kernel.family == Family::matrix) return std::max((t.bm + t.bn) * 80, stage);  // rows of 32 halves and 8
  return std::max(2 * t.bm * 144, t.parts() * 16 * (t.tn + 8) * 4);                 // two buffers of 64 and 8
}

Input form_of(const LinearKernel& kernel, const LinearShape& shape) {
  return kernel.family == Family::gemv_fragments && shape.dtype != DType::f16 ? Input::halves : kernel.input;
}

namespace {

// What both families with cooperative matrices need.
std::string why_no_matrix(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const Feature needed = kernel.family == Family::matrix ? Feature::coopmat : Feature::fragments;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16, needed}) {
    if (!features.has(feature))
      return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
  }
  const MatrixShape& shape = features.matrix_f16[0];
  if (shape.m == 0) return "needs cooperative matrices of fp16 with fp32 sums";
  const bool whole = kernel.family == Family::gemv_fragments && s.integers;  // and scaled in fp32
  if (s.dtype != DType::f16 && !whole) return format("computes in fp16, not in %s", name(s.dtype));
  const Tile& t = kernel.tile;
  const uint32_t lanes = tile_lanes(kernel, features);
  if (kernel.family == Family::matrix) {
    if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 4 != 0 || 32 % shape.k != 0 || shape.k % 8 != 0)
      return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
    if (lanes % 32 != 0 || t.bm * 4 % lanes != 0 || t.bn * 2 % lanes != 0)
      return format("does not divide among subgroups of %u", features.subgroup_size);
    // A driver writes every product out: lavapipe took longer than a minute to compile 64 of 8x8x8.
    const uint32_t products = t.tm / shape.m * (t.tn / shape.n) * (32 / shape.k);
    if (products >= 64)
      return format("would make %u products of %ux%ux%u a chunk", products, shape.m, shape.n, shape.k);
  }
  const bool quantized = s.weight == Storage::q4 || s.weight == Storage::q8;
  if (kernel.family == Family::gemv_fragments) {
    if (s.weight == Storage::f32) return "takes fp16 and quantized weights";
    return quantized && s.group % 32 != 0 ? "takes one scale a row, or groups that are multiples of 32" : "";
  }
  if (kernel.family == Family::fragments && s.weight != Storage::q4) return "takes int4 weights only";
  if (quantized && s.group != 0 && (s.group % 8 != 0 || !s.scale_f16))
    return "takes one scale a row, or fp16 scales of groups that are multiples of 8";
  return "";
}

}  // namespace

std::string unsupported_reason(const LinearKernel& kernel, const LinearShape& shape, const Features& features) {
  if (kernel.input != Input::floats) return why_not_integers(kernel, shape, features);
  if (kernel.family == Family::gemv) return "";
  const bool textures = shape.textures || shape.weight_texture;
  if (textures && kernel.family != Family::tiled) return "takes no textures";
  if (kernel.family == Family::gemv_rows) return "";
  if (kernel.family == Family::gemv_fragments) return why_no_matrix(kernel, shape, features);
  if (kernel.family != Family::tiled) {
    const std::string reason = why_no_matrix(kernel, shape, features);
    if (!reason.empty()) return reason;
  }
  if (!fits(kernel, features)) {
    return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u",
                  tile_lanes(kernel, features), tile_shared_bytes(kernel, features), features.max_invocations,
                  features.max_shared_bytes);
  }
  return "";
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

namespace {

// Kernels that know where matrix elements are, or null. H200, int4 in groups of 32, us for 4096 -> 14336 and back:
//   rows   gemvf8x2      gemvf16x2     fragments64x128   fragments64x256   best without matrices
//   1      14.3  13.8                                                      20.0  24.2
//   8      15.4  16.2                                                      56 (gemv8)
//   16     23.0  25.4    21.1  17.3    49.9  157         62  196           112  110
//   32     39.2  45.8    29.5  28.0    49.9  157         62  196           218  214
//   64     71.6  86.6    49.6  50.2    51.1  159         64  198           424  421
//   128                        93.5    57.7  159         64  199
//   256                                109   161         108  199
//   512                                208   192         195  258          1870 (tile64x128)
//   2048                               704   756         637  636
// Passes of few rows win where tiles are few, whatever the rows: 512 x 2048 -> 512 10.6 us against 29 of the best tile.
// Two strips a workgroup spare work where there are invocations enough, else one strip and 8 rows leave more of them:
// us of gemvf8, gemvf16, gemvf16x2: 16 x 4096 -> 4096 9.4, 9.9, 10.9; 128 x 4096 -> 4096 45, 40, 30; 128 x 2048 ->
// 512 7.7, 8.3, 8.9; one row, 4096 -> 4096 8.5 and 9.1 of gemvf8x2, 4096 -> 14336 15.8 and 12.9. Weights that tiles of
// fragments do not take: int8, gemvf16x2 and the best of matrix*: 4096 -> 14336, 64 rows 55, 66; 100 rows 88, 94; 128
// 103, 96; 4096 -> 8192, 128 rows 62, 66.
const LinearKernel* pick_fragments(const LinearShape& s, const Features& features) {
  constexpr int64_t kEnough = 1 << 16;
  const auto tile_groups = [&](const char* name) { return workgroups(linear_kernel(name).tile, 1, s.m, s.n); };
  const auto invocations = [&](int64_t rows, int64_t strips) {
    return ceil_div(s.n, 16 * strips) * ceil_div(s.m, rows) *
           gemv_lanes(linear_kernel(strips == 2 ? "gemvf8x2" : "gemvf8"), s.k, features);
  };
  const char* name = "gemvf8";
  const bool tiles = s.m > 128 || unsupported_reason(linear_kernel("fragments64x128"), s, features).empty();
  if (s.m > 32 && tiles && tile_groups("fragments64x128") >= 96) {
    name = tile_groups("fragments64x256") >= 264 ? "fragments64x256" : "fragments64x128";
  } else if (s.weight != Storage::f16 && invocations(s.m > 8 ? 16 : 8, 2) >= kEnough) {
    name = s.m > 8 ? "gemvf16x2" : "gemvf8x2";
  } else if (s.m > 8 && invocations(16, 1) >= 2 * kEnough) {
    name = "gemvf16";
  }
  const LinearKernel& kernel = linear_kernel(name);
  return unsupported_reason(kernel, s, features).empty() ? &kernel : nullptr;
}

// H200, as above: 64 rows 64 us in tiles of 64 x 64, 102 of 128 x 128; 128 rows 101, 104; 256 rows 167, 137; 512 rows
// 331, 240 (back 333, 326); 2048 rows 806 and 788 of 128 x 128.
const LinearKernel* pick_matrix(const LinearShape& s, const Features& features) {
  if (s.m <= 16) return nullptr;
  for (const char* name : {"matrix128x128", "matrix64x64", "matrix32x32"}) {
    const LinearKernel& kernel = linear_kernel(name);
    if (!unsupported_reason(kernel, s, features).empty()) continue;
    if (kernel.tile.bm == 128 && workgroups(kernel.tile, 1, s.m, s.n) < 128) continue;
    return &kernel;
  }
  return nullptr;
}

}  // namespace

// lavapipe, 2 cores, processor time, int4 2048 x 2048: one row 1.3 ms against 4.3 of gemv1 and 2.9 of gemv1x2, 128 rows
// 47 ms against 56 of gemvr4, 60 of 16 rows a pass and 91 of the best tile; with every other weight and at 384 x 1536
// 8 rows a pass are ahead of all tiles, too.
static const LinearKernel& pick_on_cpu(const LinearShape& s) {
  return linear_kernel(s.m == 1 ? "gemvr1" : s.m == 2 ? "gemvr2" : s.m <= 4 ? "gemvr4" : "gemvr8");
}

const LinearKernel& pick_linear(const LinearShape& s, const Features& features) {
  if (const LinearKernel* kernel = s.integers ? pick_integers(s, features) : nullptr) return *kernel;
  if (features.cpu && !s.textures && !s.weight_texture) return pick_on_cpu(s);
  if (const LinearKernel* kernel = pick_fragments(s, features)) return *kernel;
  if (const LinearKernel* kernel = pick_matrix(s, features)) return *kernel;
  if (s.m <= 8 && (s.m <= 4 || pass_rows(s.m, s.n, s.k) == 8))
    return gemv(std::bit_ceil(static_cast<uint32_t>(s.m)), s, features);
  const LinearKernel& tiled = tile_kernel(1, s.m, s.n, features);
  const bool few =
      workgroups(tiled.tile, 1, s.m, s.n) < fill(features) && (s.m <= kPassesRows || s.m * s.n * s.k <= kPassesWork);
  if (s.m <= kGemvRows || few) return gemv(pass_rows(s.m, s.n, s.k), s, features);
  return tiled;
}

const LinearKernel& choose_linear(const LinearShape& shape, const Features& features) {
  if (features.kernel.empty() || is_conv_kernel(features.kernel)) return pick_linear(shape, features);
  const LinearKernel& kernel = linear_kernel(features.kernel);
  const std::string reason = unsupported_reason(kernel, shape, features);
  if (!reason.empty()) {
    fail(Code::InvalidArgument, Stage::plan, "kernel", "kernel '%s' cannot run here: it %s", features.kernel.c_str(),
         reason.c_str());
  }
  return kernel;
}

// H200, matrix128x128, us for 512, 513 and 520 x 4096 -> 14336: int4 233, 245, 246 (in tiles alone 349), int8 228, 246,
// 246 (337).
const LinearKernel* pick_matrix_tail(const LinearKernel& kernel, LinearShape s, const Features& features) {
  constexpr int64_t kMost = 8;  // a pass of a GEMV
  if (kernel.family != Family::matrix || s.m < kernel.tile.bm) return nullptr;
  s.m %= kernel.tile.bm;
  s.integers = false;  // numbers already
  return s.m == 0 || s.m > kMost ? nullptr : &pick_linear(s, features);
}

Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features) {
  return tile_kernel(batch, m, n, features).tile;
}

}  // namespace pumice::engine
