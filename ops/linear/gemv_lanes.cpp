// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/gemv_lanes.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

// Whether high and low parts are two matrices.
bool takes_two_matrices(const LinearKernel& kernel) {
  return kernel.input == Input::splits && !takes_pairs(kernel);
}

// Of the columns that a subgroup splits at once, and then of its sums.
constexpr uint32_t kPairBytes = 1024;

// Of glsl/include/linear/rms_norm.glslh where no row is normed, and of 16 rows of layer_norm.glslh, of x and residual.
constexpr uint32_t kNormBytes = 144 + 256;

// Of kernels that split x themselves: invocations, which need most registers, and subgroups in all, 16 for each
// multiprocessor. H200, fp32, us with 128 and 256 invocations: split_gemvf8x2 197 x 1536 -> 384 (2400 subgroups with
// 256) 11.2, 13.3; 32 x 2048 -> 2048 (2048) 13.7, 11.2; split_gemvf16x2 512 x 1536 -> 384 (3072) 15.4, 21.9; 512 x
// 3072 -> 768 49.3, 64.7.
constexpr uint32_t kMostSplitLanes = 256, kManySplitLanes = 128;
// With 16 rows a pass and more than 128 invocations half as many: split_gemvf16x2, fp32 weights, 197 x 1536 -> 384
// (1248 with 256) 14.2, 17.2; int4, 128 x 1536 -> 384 (768) 11.8, 10.0.
constexpr int64_t kMostSplitSubgroups = 2112;

// Whether a workgroup of a GEMV may have so many times 32 invocations.
bool has_slots(const LinearKernel& kernel, uint32_t slots, const Features& features) {
  const uint32_t row = kernel.family == Family::gemv_fragments ? 80 : 256;
  const uint32_t each = takes_pairs(kernel) ? kPairBytes : kernel.rows * kernel.panels * row;
  const uint32_t most = takes_two_matrices(kernel) ? kMostSplitLanes : most_pass_lanes(features);
  return slots * 32 <= std::min(most, features.max_invocations) &&
         slots * each + 16 + kNormBytes <= features.max_shared_bytes;
}

// 32 for about each 8 tiles of 64 columns: a lane then has a few loads in flight. Of long rows one tile more is no
// reason to double them where workgroups are many, which is where two panels are taken: H200, 4 x 4097 -> 14336, int8
// 19.6 us against 20.6, int4 15.3 against 16.6; 4 x 4097 -> 4096 12.0 against 9.7.
uint32_t gemv_fragment_lanes(const LinearKernel& kernel, int64_t k, const Features& features) {
  const int64_t tiles = ceil_div(k, 64);
  uint32_t slots = std::min(
      std::bit_ceil(static_cast<uint32_t>(ceil_div(tiles > 64 && kernel.panels == 2 ? tiles - 1 : tiles, 8))), 32u);
  if (takes_two_matrices(kernel)) slots = std::min(slots, kManySplitLanes / 32);
  while (slots > 1 && !has_slots(kernel, slots, features)) slots /= 2;
  return slots * 32;
}

}  // namespace

// 32 for about each 6 tiles of 64 columns of its panels, so that a lane has several loads in flight and few partial
// sums are left. H200, one row: k = 4096: 256 lanes 18.8 us, 512 19.2; k = 14336: 512 lanes 18.9, 256 25 to 28.
uint32_t gemv_least_lanes(const LinearKernel& kernel, int64_t k, const Features& features) {
  if (kernel.family == Family::gemv_fragments) return gemv_fragment_lanes(kernel, k, features);
  if (kernel.family == Family::gemv_rows) return 8;
  const auto tiles = static_cast<uint32_t>(ceil_div(k, 64));
  uint32_t slots = std::max(std::bit_floor(std::max(tiles / 6, 1u)), std::min(std::bit_ceil(tiles), 4u));
  slots = std::min(slots, 16u);
  while (slots > 1 && !has_slots(kernel, slots, features)) slots /= 2;
  return slots * 32;
}

// Of each column that shares rows of x: 12 subgroups in all, each with two tiles or more. H200, us with 1, 2 and 3
// slots: fp32 weights, 197 x 384 -> 1152 in four columns 10.7, 8.1, 8.3, in six 10.3, 9.2, 14.7; int4, 128 x 384 ->
// 1536 in three columns 9.1, 6.9, 6.4.
static uint32_t shared_row_slots(const LinearKernel& kernel, int64_t k) {
  const auto pairs = static_cast<uint32_t>(ceil_div(k, 128));
  return std::min(12 / kernel.columns, pairs);
}

// Where workgroups are few, more subgroups share a row panel, while each has two tiles or more. H200, int4, one row, us
// of gemvf* with 8, 4 and 2 tiles of a subgroup: 2048 -> 3072 7.6, 5.6, 5.0; 2048 -> 2048 7.5, 5.5, 4.7; 2048 -> 16384
// (two panels) 10.3, 9.1, 9.7; 8192 -> 2048 8.5, 7.3; 4096 -> 6144 9.0, 7.9, 10.8; 4096 -> 4096 8.4, 6.9, 8.2; 4096 ->
// 28672 (two panels) 23.3, 23.4, 28.1. Of gemv1 and gemv1x2 in a whole model of Llama's 1B shape: 1044 tokens/s without
// this, 1098 up to 1536 subgroups, 1113 up to 3072, 1127 up to 6144.
uint32_t gemv_lanes(const LinearKernel& kernel, int64_t m, int64_t n, int64_t k, const Features& features) {
  if (kernel.columns > 1) return kernel.columns * shared_row_slots(kernel, k) * 32;
  const uint32_t least = gemv_least_lanes(kernel, k, features);
  if (features.cpu || kernel.family == Family::gemv_rows) return least;
  // About 46 for each multiprocessor.
  const int64_t most = features.filling(takes_two_matrices(kernel) ? kMostSplitSubgroups : 6144);
  const int64_t groups = ceil_div(ceil_div(n, 16), kernel.panels) * ceil_div(m, kernel.rows), tiles = ceil_div(k, 64);
  uint32_t slots = least / 32;
  const auto is_heavy = [&](uint32_t s) {
    return takes_two_matrices(kernel) && kernel.rows > 8 && s * 32 > kManySplitLanes;
  };
  while (slots < 32 && groups * slots * (is_heavy(slots * 2) ? 4 : 2) <= most && tiles >= int64_t{slots} * 4 &&
         has_slots(kernel, slots * 2, features))
    slots *= 2;
  return slots * 32;
}

// H200: with one row panel, two prefetched tiles gain 2 to 4 %.
uint32_t gemv_depth(const LinearKernel& kernel, bool whole_ahead, const Features& features) {
  return features.cpu || kernel.panels != 1 || !holds_two_ahead(kernel.rows, whole_ahead, features) ? 1 : 2;
}

// Of rows with few tiles for a subgroup, whose loads then wait for each other. H200, one row, us with the first vectors
// ahead and with all: fp32 384 -> 384 6.3, 3.7; 384 -> 1536 6.5, 4.1; 1536 -> 384 (3 tiles) 7.4, 4.9; 4096 -> 4096 (4
// tiles) 18.8, 20.7; fp16 the same shapes 5.5, 3.9; 5.8, 4.1; 6.9, 4.8; 12.0, 12.4; 4096 -> 14336 (8 tiles) 29.6, 33.6.
bool gemv_whole_ahead(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const bool floats = s.weight == WeightType::f16 || s.weight == WeightType::f32;
  if (features.cpu || !floats || s.m > 1 || kernel.rows * kernel.panels != 1) return false;
  const uint32_t lanes = gemv_lanes(kernel, s.m, s.n, s.k, features);
  return ceil_div(s.k, 64) <= int64_t{3} * lanes / 32 && holds_whole_tiles(lanes, s.weight, features);
}

// One workgroup of about 32 subgroups for each multiprocessor, which brings x there once, and so many row panels that
// all workgroups run at once, up to 16. H200, int4 in groups of 32, 4096 -> 14336, us in fp16 and fp32 with 7 panels
// of 4 subgroups 12.4, 13.4; 7 of 2 15.9, 17.3; 4 of 4 12.8, 13.2; 4 of 8 13.7, 15.0; 8 of 4 12.6, 13.7; 2 of 8 13.0,
// 14.5. 4096 -> 28672 with 8 of 4 22.3, 24.2; 14 of 2 21.8, 22.0; 28 of 1 31.4, 29.2. Of more, subgroups take one after
// another: 2048 -> 128256 by 132 workgroups of 32 39.5, 44.4, of 24 41.3, 45.3.
// Two pairs in flight where they divide the tiles, else branches put them into memory, and subgroups have many: fp16,
// one pair and two 4096 -> 14336 12.4, 11.9; 4096 -> 28672 21.8, 19.8; 2048 -> 128256 40.8, 39.5; 2048 -> 16384 8.9,
// 8.7; 4096 -> 6144 (8 slots) 7.8, 8.0. fp32, 4096 -> 14336 13.1, 13.4. int8, fp16 17.7, 17.8.
RowWorkgroup gemv_row_workgroup(const LinearKernel& kernel, int64_t n, int64_t k, WeightType weight, bool gated,
                                const Features& features) {
  const uint32_t most = std::min(features.max_invocations, 1024u) / 32, units = features.units();
  const int64_t all = ceil_div(n, 16), tiles = ceil_div(k, 64);
  RowWorkgroup w = {1, 1, 1, units};
  if (const int64_t each = ceil_div(all, int64_t{units}); each > 16 && !gated) {
    w.panels = most;
  } else {
    const int64_t even = gated ? ceil_div(each, 2) * 2 : each;
    w.panels = static_cast<uint32_t>(std::clamp<int64_t>(even, gated ? 2 : 1, std::min(16u, most)));
    w.slots = std::min(std::bit_floor(most / w.panels), std::bit_ceil(static_cast<uint32_t>(ceil_div(tiles, 2))));
    w.workgroups = static_cast<uint32_t>(ceil_div(all, int64_t{w.panels}));
  }
  const bool pairs = kernel.input == Input::floats && weight == WeightType::q4;
  if (pairs && w.slots <= 4 && tiles % (int64_t{w.slots} * 4) == 0) w.depth = 2;
  return w;
}

// Parts of all rows, or where these were, the sums; the powers of the rows; and norms.
uint64_t shared_rows_bytes(const LinearKernel& kernel, int64_t k, const Features& features) {
  const uint64_t tiles = static_cast<uint64_t>(ceil_div(k, 64)), rows = kernel.rows;
  const uint64_t parts = takes_two_matrices(kernel) ? 2 : 1;
  const uint64_t sums = uint64_t{gemv_lanes(kernel, 1, 1, k, features)} / 32 * kernel.own_panels() * rows * 80;
  return std::max(tiles * rows * parts * 128, sums) + tiles * rows * 4 + kNormBytes;
}

// Columns of x and the sums of all subgroups.
uint64_t gemv_row_shared_bytes(const LinearKernel& kernel, int64_t k, const Features& features) {
  const uint64_t column = kernel.input == Input::splits ? 4 : 2;
  return static_cast<uint64_t>(k) * column + static_cast<uint64_t>(ceil_div(k, 256)) * 4 +
         uint64_t{std::min(features.max_invocations, 1024u)} / 32 * 80;
}

}  // namespace pumice::engine
