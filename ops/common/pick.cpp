// SPDX-License-Identifier: Apache-2.0
// Kernel selection for matrix products. Every threshold says what set it.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "ops/common/gemm.h"

namespace pumice {
namespace {

// Large to small; the last one fits every device (128 invocations, 16 KiB).
constexpr Tile kTiles[] = {
    {128, 128, 8, 8},  // 256 invocations, 20 KiB
    {64, 128, 8, 8},   // 15 KiB
    {64, 64, 8, 4},
    {32, 64, 4, 4},
};

bool fits(const Tile& tile, const Features& features) {
  return tile.lanes() <= features.max_invocations && tile.shared_bytes() <= features.max_shared_bytes;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t workgroups(const Tile& tile, int64_t batch, int64_t m, int64_t n) {
  return batch * ceil_div(m, tile.bm) * ceil_div(n, tile.bn);
}

// Fewer workgroups than this leave most of the device idle. GPU: estimate from 132 multiprocessors, to be measured. CPU:
// lavapipe on 2 cores runs 128 x 1536 x 384 as 12 tiles of 128 x 128 in 18 ms, as gemv8 in 35 to 55 ms.
int64_t fill(const Features& features) { return features.cpu ? 2 : 128; }

// Up to here the GEMV wins. GPU: one pass over the weights, its lanes hold the sums of 8 rows without spilling; estimate, to be
// measured. CPU: lavapipe, 16 rows: 2.8 ms against 3.3 to 3.7 of the best tile at 384 x 1536, 6.6 against 5.8 at 1024 x 1024;
// the tiles cost the same up to 32 rows, the GEMV twice as much.
int64_t gemv_rows(const Features& features) { return features.cpu ? 16 : 8; }

// Products up to this many multiplications run as GEMVs of 8 rows when no tile gives enough workgroups: the weights are then
// read m / 8 times, from cache. Estimate from 128 x 384 x 1536 on 132 multiprocessors, to be measured.
constexpr int64_t kGemvWork = int64_t{1} << 27;

// Lanes of a workgroup that shares one strip: 32 for about each 6 of its tiles of 64 columns, so that a lane has several loads
// in flight and few partial sums are left. Estimate from kernels of this form (256 lanes at k = 4096, 1024 at 14336).
uint32_t gemv_lanes(uint32_t rows, int64_t k, const Features& features) {
  const uint32_t tiles = static_cast<uint32_t>(ceil_div(k, 64));
  uint32_t slots = std::max(std::bit_floor(std::max(tiles / 6, 1u)), std::min(std::bit_ceil(tiles), 4u));
  const auto too_large = [&](uint32_t s) {
    return s * 32 > features.max_invocations || rows * s * 32 * 8 > features.max_shared_bytes;
  };
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * 32;
}

LinearKernel gemv(uint32_t rows, int64_t k, const Features& features) { return {rows, gemv_lanes(rows, k, features), {}}; }

}  // namespace

Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features) {
  for (const Tile& tile : kTiles) {
    const bool half_empty = m <= tile.bm / 2 && tile.bm > 32;
    if (fits(tile, features) && !half_empty && workgroups(tile, batch, m, n) >= fill(features)) return tile;
  }
  return kTiles[std::size(kTiles) - 1];
}

LinearKernel pick_linear(int64_t m, int64_t n, int64_t k, const Features& features) {
  if (m <= gemv_rows(features)) return gemv(std::bit_ceil(static_cast<uint32_t>(std::min<int64_t>(m, 8))), k, features);
  const Tile tile = pick_tile(1, m, n, features);
  if (workgroups(tile, 1, m, n) < fill(features) && m * n * k <= kGemvWork) return gemv(8, k, features);
  return {0, 0, tile};
}

LinearKernel forced(LinearKernel picked, int64_t k, const Features& features) {
  const char* text = std::getenv("PUMICE_KERNEL");
  if (text == nullptr || *text == '\0') return picked;
  const std::string_view name(text);
  std::string known;
  for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
    const std::string candidate = "gemv" + std::to_string(rows);
    if (name == candidate) return gemv(rows, k, features);
    known += candidate + ", ";
  }
  for (const Tile& tile : kTiles) {
    const std::string candidate = "tile" + std::to_string(tile.bm) + "x" + std::to_string(tile.bn);
    if (name == candidate) return fits(tile, features) ? LinearKernel{0, 0, tile} : picked;
    known += candidate + ", ";
  }
  fail(Code::InvalidArgument, Stage::plan, "PUMICE_KERNEL", "'%s' is none of %s", text, known.substr(0, known.size() - 2).c_str());
}

}  // namespace pumice
