// SPDX-License-Identifier: Apache-2.0
// Kernel selection for matrix products. Every threshold says what set it.
#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "ops/common/linear_kernel.h"
#include "runtime/nearest.h"

namespace pumice {
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
};

bool fits(const Tile& tile, const Features& features) {
  return tile.lanes() <= features.max_invocations && tile.shared_bytes() <= features.max_shared_bytes;
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t workgroups(const Tile& tile, int64_t batch, int64_t m, int64_t n) {
  return batch * ceil_div(m, tile.bm) * ceil_div(n, tile.bn);
}

// Fewer workgroups than this leave most of the device idle. GPU: H200, 132 multiprocessors. CPU: lavapipe on 2 cores
// runs 128 x 1536 x 384 as 12 tiles of 128 x 128 in 18 ms, as gemv8 in 35 to 55 ms.
int64_t fill(const Features& features) {
  return features.cpu ? 2 : 128;
}

// Up to here the GEMV wins. GPU: H200, 16 rows, 4096 -> 14336: 113 us against 203 of the best tile; 32 rows: 221
// against 206. CPU: lavapipe, 16 rows: 2.8 ms against 3.3 to 3.7 of the best tile at 384 x 1536, 6.6 against 5.8 at
// 1024 x 1024; the tiles cost the same up to 32 rows, the GEMV twice as much.
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
// and 27.2 against 35; 8 rows have no registers left. MiniLM (fewer invocations) loses 5 % at 16 tokens. A CPU has no
// use for it.
const LinearKernel& gemv(uint32_t rows, const LinearShape& s, const Features& features) {
  constexpr int64_t kInvocations = 1 << 16;
  const LinearKernel* one = nullptr;
  for (const LinearKernel& kernel : kKernels) {
    if (kernel.family != Family::gemv || kernel.rows != rows) continue;
    if (kernel.strips == 1) one = &kernel;
    const int64_t groups = ceil_div(ceil_div(s.n, 16), kernel.strips) * ceil_div(s.m, rows);
    if (kernel.strips == 2 && !features.cpu && groups * gemv_lanes(kernel, s.k, features) >= kInvocations)
      return kernel;
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
    if (fits(tile, features) && !half_empty && workgroups(tile, batch, m, n) >= fill(features)) break;
  }
  return *last;
}

}  // namespace

// 32 for about each 6 tiles of 64 columns of its strips, so that a lane has several loads in flight and few partial
// sums are left. H200, one row: k = 4096: 256 lanes 18.8 us, 512 19.2; k = 14336: 512 lanes 18.9, 256 25 to 28.
uint32_t gemv_lanes(const LinearKernel& kernel, int64_t k, const Features& features) {
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

std::string why_not(const LinearKernel& kernel, const LinearShape&, const Features& features) {
  for (uint32_t i = 0; i < kNumFeatures; ++i) {
    const auto feature = static_cast<Feature>(i);
    if ((kernel.needs & bit(feature)) != 0 && !features.has(feature)) {
      return std::string("needs the feature ") + pumice::name(feature) +
             ", which this device lacks or which was switched off";
    }
  }
  if (kernel.family == Family::tiled && !fits(kernel.tile, features)) {
    return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", kernel.tile.lanes(),
                  kernel.tile.shared_bytes(), features.max_invocations, features.max_shared_bytes);
  }
  return "";
}

const LinearKernel& pick_linear(const LinearShape& s, const Features& features) {
  if (s.m <= 8 && (s.m <= 4 || pass_rows(s.m, s.n, s.k) == 8))
    return gemv(std::bit_ceil(static_cast<uint32_t>(s.m)), s, features);
  const LinearKernel& tiled = tile_kernel(1, s.m, s.n, features);
  const bool few =
      workgroups(tiled.tile, 1, s.m, s.n) < fill(features) && (s.m <= kPassesRows || s.m * s.n * s.k <= kPassesWork);
  if (s.m <= kGemvRows || few) return gemv(features.cpu ? 8 : pass_rows(s.m, s.n, s.k), s, features);
  return tiled;
}

const LinearKernel& choose_linear(const LinearShape& shape, const Features& features) {
  if (features.kernel.empty()) return pick_linear(shape, features);
  const LinearKernel& kernel = linear_kernel(features.kernel);
  const std::string reason = why_not(kernel, shape, features);
  if (!reason.empty()) {
    fail(Code::InvalidArgument, Stage::plan, "kernel", "kernel '%s' cannot run here: it %s", features.kernel.c_str(),
         reason.c_str());
  }
  return kernel;
}

Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features) {
  return tile_kernel(batch, m, n, features).tile;
}

}  // namespace pumice
