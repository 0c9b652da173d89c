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

// Lanes of a workgroup: 32 for about each 6 tiles of 64 columns of its strips, so that a lane has several loads in
// flight and few partial sums are left. H200, one row: k = 4096: 256 lanes 18.8 us, 512 19.2; k = 14336: 512
// lanes 18.9, 256 25 to 28.
uint32_t gemv_lanes(uint32_t rows, int64_t k, const Features& features) {
  const uint32_t tiles = static_cast<uint32_t>(ceil_div(k, 64));
  uint32_t slots = std::max(std::bit_floor(std::max(tiles / 6, 1u)), std::min(std::bit_ceil(tiles), 4u));
  const auto too_large = [&](uint32_t s) {
    return s > 16 || s * 32 > features.max_invocations || rows * s * 32 * 8 + 16 > features.max_shared_bytes;
  };
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * 32;
}

// Two strips a workgroup spare half of what is done for x, one leaves more workgroups; and tiles on their way. H200,
// 4096 -> 14336 and back, us: one row 18.8 and 18.9 against 19.5 and 21 of one strip, 2 rows 23.4 and 20.8 against 28.1
// and 27, 4 rows 31.3 and 27.2 against 35; 8 rows have no registers left. MiniLM (fewer invocations) loses 5 % at 16
// tokens. Where one strip is taken, two tiles on their way gain 2 to 4 %. A CPU has no use for either.
LinearKernel gemv(uint32_t rows, int64_t m, int64_t n, int64_t k, const Features& features) {
  constexpr int64_t kInvocations = 1 << 16;
  const uint32_t pair_lanes = gemv_lanes(2 * rows, k, features);
  const int64_t pairs = ceil_div(ceil_div(n, 16), 2) * ceil_div(m, rows);
  if (!features.cpu && rows <= 4 && pairs * pair_lanes >= kInvocations) return {rows, pair_lanes, 2, 1, {}};
  return {rows, gemv_lanes(rows, k, features), 1, features.cpu ? 1u : 2u, {}};
}

}  // namespace

Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features) {
  for (const Tile& tile : kTiles) {
    const bool half_empty = m <= tile.bm / 2 && tile.bm > 32;
    if (tile.bm == 128 && !features.cpu) continue;  // H200, 512 rows: 2228 us against 1911 of 64 x 128 (4096 -> 14336)
    if (fits(tile, features) && !half_empty && workgroups(tile, batch, m, n) >= fill(features)) return tile;
  }
  return kTiles[std::size(kTiles) - 1];
}

LinearKernel pick_linear(int64_t m, int64_t n, int64_t k, const Features& features) {
  if (m <= 8 && (m <= 4 || pass_rows(m, n, k) == 8))
    return gemv(std::bit_ceil(static_cast<uint32_t>(m)), m, n, k, features);
  const Tile tile = pick_tile(1, m, n, features);
  const bool few = workgroups(tile, 1, m, n) < fill(features) && (m <= kPassesRows || m * n * k <= kPassesWork);
  if (m <= kGemvRows || few) return gemv(features.cpu ? 8 : pass_rows(m, n, k), m, n, k, features);
  return {0, 0, 1, 1, tile};
}

LinearKernel forced(LinearKernel picked, int64_t k, const Features& features) {
  const char* text = std::getenv("PUMICE_KERNEL");
  if (text == nullptr || *text == '\0') return picked;
  const std::string_view name(text);
  std::string known;
  for (const uint32_t rows : {1u, 2u, 4u, 8u}) {
    const std::string candidate = "gemv" + std::to_string(rows);
    if (name == candidate) return {rows, gemv_lanes(rows, k, features), 1, features.cpu ? 1u : 2u, {}};
    known += candidate + ", ";
    const std::string pair = candidate + "x2";  // two strips, with tiles on their way
    if (rows <= 4 && name == pair) return {rows, gemv_lanes(2 * rows, k, features), 2, 2, {}};
    if (rows <= 4) known += pair + ", ";
  }
  for (const Tile& tile : kTiles) {
    const std::string candidate = "tile" + std::to_string(tile.bm) + "x" + std::to_string(tile.bn);
    if (name == candidate) return fits(tile, features) ? LinearKernel{0, 0, 1, 1, tile} : picked;
    known += candidate + ", ";
  }
  fail(Code::InvalidArgument, Stage::plan, "PUMICE_KERNEL", "'%s' is none of %s", text,
       known.substr(0, known.size() - 2).c_str());
}

}  // namespace pumice
