// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/sdpa_kernel.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

uint32_t shared_bytes(const SdpaBlocks& b, uint32_t e_vec4s, uint32_t v_vec4s) {
  const uint32_t staged = b.staged ? b.keys * (std::max(e_vec4s, v_vec4s) + 1) : 1;
  return 16 * (b.rows * e_vec4s + staged + b.lanes) + 4 * (b.rows * b.keys + 2 * b.lanes + 3 * b.rows);
}

// A CPU driver stops and resumes each of a workgroup's vectors of lanes at each barrier, so few lanes are faster, and
// so are short blocks, of which no more than the keys there are is computed. llvmpipe, 2 cores, processor time in ms,
// of 128 lanes, 16 rows and 64 keys (128 of one row) before, and of these:
//   12 heads of 32, 16 rows, a mask        0.56, 0.34
//   12 heads of 64, 128 rows, causal       23.8, 15.5
//   12 heads of 64, 1 row of 500 keys      4.9, 1.9
//   4 heads of 256, 40 rows                8.4, 6.5
// With twice as many sums to a lane, drivers take twice as long to compile what is then unrolled.
SdpaBlocks fit_to_cpu(SdpaBlocks b, uint32_t v_vec4s) {
  constexpr uint32_t kVector = 8, kKeys = 16, kSums = 4;  // lanes; keys; vec4 groups of the output that a lane sums
  b.rows = std::min(b.rows, kVector);
  b.keys = kKeys;
  b.lanes = std::clamp(std::bit_ceil(static_cast<uint32_t>(ceil_div(b.rows * v_vec4s, kSums))), kVector, b.lanes);
  return b;
}

// More products than these are not worth their registers (heads of 128 are 64 at 16 x 16 x 16 and 64 keys) nor the time
// lavapipe takes to compile them, which writes each out.
constexpr int64_t kMostProducts = 64;

// Of a lane, for keys on the way, scores and sums. Those of NVK, heads of 64 in one subgroup: 64 keys are 128 of these,
// 35 spills and 1.4 s to compile; 32 keys 80, none and 0.6 s. From its statistics (docs/fleet.md), not measured.
constexpr int64_t kRoomyRegisters = 128;

// Likewise where registers are few and subgroups, whose they are, smaller than 32. Mesa's compiler for Battlemage,
// heads of 32 and 32 keys: one subgroup, 64 of these, spills and fills 185, two, 48, none.
constexpr int64_t kFewRegisters = 64;

// vec4 groups of keys that a lane has on the way beside its queries. RDNA 3 keeps a fp16 matrix four times in subgroups
// of 64: of heads of 128 it spills 46 registers with 16 of these, none with 8.
int64_t most_loads_of_matrices(const Features& features) {
  return features.subgroup_size > 32 ? 8 : 16;
}

bool has_small_subgroups(const Features& features) {
  return features.few_registers && features.subgroup_size < 32;
}

// vec4 groups of keys that a lane has on the way. Spills on Adreno 660 of heads of 64 and 16 rows, of 8 groups 415 and
// of 4 none; of 8 rows 86 and none; of heads of 128 374 and none. Of Intel's, heads of 128, 16 groups: 118 to 291, 8:
// none in fp32, in fp16 none on Arc A and Tiger Lake and up to 881 on Battlemage, 4: none. Mali, heads of 32 and 64, 4
// groups: 4 to 89, 2: none.
uint32_t most_loads(DType dtype, const Features& features) {
  if (takes_least_tiles(features)) return 2;
  if (has_fewest_registers(features)) return 4;
  if (!has_small_subgroups(features)) return 1 << 16;  // as many as there are
  return dtype == DType::f16 && features.subgroup_size == 16 ? 4 : 8;
}

// `roomy`: only with fewer registers than those.
std::optional<SdpaMatrices> with_keys(uint32_t keys, const MatrixShape& m, const SdpaShape& s, const Features& features,
                                      bool roomy) {
  const int64_t e = ceil_div(s.e, m.k) * m.k, ev = ceil_div(s.ev, m.n) * m.n, segments = features.subgroup_size / m.m;
  const int64_t products = keys / m.n * (e / m.k) + keys / m.k * (ev / m.n);
  if (keys % m.n != 0 || keys % m.k != 0 || m.n * 2 > keys || keys / 8 % segments != 0 || products > kMostProducts)
    return std::nullopt;
  const auto sums = static_cast<uint32_t>(keys + ev);  // of a subgroup's m rows: scores, and the result
  if (!holds_sums({0, 0, m.m, sums}, features)) return std::nullopt;
  std::optional<SdpaMatrices> found;
  // Four subgroups share the keys they load; fewer where workgroups would be too few. H200: 132 multiprocessors.
  for (uint32_t subgroups = 4; subgroups >= 1; subgroups /= 2) {
    SdpaMatrices matrices{m, subgroups, keys, 0};
    const int64_t lanes = int64_t{subgroups} * features.subgroup_size;
    matrices.staged = static_cast<uint32_t>(
        std::max({keys * (e / 8 + 1), keys * (ev / 8 + 1), int64_t{matrices.rows()} * (e / 8 + 1)}));
    const uint32_t bytes = 16 * (matrices.staged + matrices.rows() * (keys / 4 + 1)) + 4 * static_cast<uint32_t>(lanes);
    const bool fits = lanes <= features.max_invocations && bytes <= features.max_shared_bytes;
    const bool few = subgroups > 1 && (s.heads * ceil_div(s.rows, matrices.rows()) < features.filling(128) ||
                                       s.rows <= matrices.rows() / 2);
    const int64_t loads = ceil_div(keys * std::max(e, ev) / 8, lanes);  // of 4 registers
    const int64_t registers = loads * 4 + int64_t{m.m} * sums / features.subgroup_size;
    if (has_small_subgroups(features)) {  // more subgroups where one of them would spill
      if (fits && registers < kFewRegisters) found = matrices;
      if (fits && !few && found) return found;
      continue;
    }
    const bool crowded = roomy && registers >= kRoomyRegisters;
    if (fits && !few && !crowded && loads <= most_loads_of_matrices(features)) return matrices;
  }
  return found;
}

constexpr int64_t kFewRows = 8;  // one row of queries would leave 15 of 16 of a matrix empty

bool has_matrices(const Features& features) {
  if (features.cpu) return false;
  return features.has(Feature::coopmat) && features.has(Feature::memory_model) && features.has(Feature::float16);
}

// Subgroups with the same 16 rows, each with its own keys, where workgroups of more rows would be few. H200 (132
// multiprocessors), us of a call in a file of many (`pumice-rt profile`), where instructions have to arrive, too.
// Without; with 8 parts and blocks of 16 keys, 8 and 32, 4 and 32:
//   6 heads of 64, 197 rows                9.3; 6.8, 6.7, 7.2
//   12 heads of 64, 197 rows               10.0; 10.3, 10.0, 8.3
//   24 heads of 64, 197 rows               10.3; 13.9, 13.4, 12.3
//   12 heads of 64, 50 rows                6.4; 5.8, 6.0, 6.1
//   8 heads of 64, 512 rows                14.6; 14.8, 13.9, 11.4
//   16 heads of 64, 512 rows               15.2; 24.7, 23.0, 18.2
//   12 heads of 32, 128 rows, a mask       7.7; 5.8, 5.8, 5.7
//   48 heads of 32, 128 rows, a mask       8.8; 10.0, 10.0, 7.8
//   8 heads of 128, 256 rows, causal       19.0; -, -, 17.1
//   32 heads of 128 over 8, 128 rows       11.3; -, -, 12.8
// fp32, split. Without; 8 and 16, 8 and 32, 4 and 16:
//   6 heads of 64, 197 rows                21.3; 11.9, 12.8, -
//   12 heads of 64, 256 rows               20.3; 20.0, 20.4, 17.2
//   24 heads of 64, 197 rows               19.2; 27.1, 28.7, -
//   8 heads of 64, 512 rows                32.1; 31.3, 31.7, 27.6
//   32 heads of 64, 128 rows               14.4; 15.0, 17.0, 12.4
//   12 heads of 32, 128 rows, a mask       11.8; 8.0, 8.7, -
// One row of queries, heads of 64, us of sdpa.glsl and of these; 6 and 32 heads take the same:
//   197 keys    13.3, 5.4; fp32 16.1, 10.0
//   1024 keys   45.6, 10.0; 57.8, 29.2
//   4096 keys   172, 25.4; 221, 103
std::optional<SdpaFragments> own_keys(const SdpaShape& s, const Features& features, uint32_t row_sums) {
  const bool split = s.dtype == DType::f32;
  const int64_t most = std::max(s.e, s.ev), groups = s.heads * ceil_div(s.rows, 16);
  if (s.int8_rows || ceil_div(s.ev, 16) % 2 != 0) return std::nullopt;  // not measured; the shader's columns
  if (split && most > 64) return std::nullopt;                          // registers
  const int64_t limit = features.filling(most > 64 ? 128 : most > 32 || split ? 256 : 384);
  if (groups > limit) return std::nullopt;
  for (const uint32_t parts : {8u, 4u}) {
    if (parts == 8 && groups > features.filling(96)) continue;
    SdpaFragments found{parts, split || (parts == 8 && s.keys <= 256) ? 16u : 32u, parts * 16 * row_sums, parts};
    if (parts * 32 <= features.max_invocations && found.shared * 16 <= features.max_shared_bytes) return found;
  }
  return std::nullopt;
}

}  // namespace

// All of few rows, else 16 (12 heads of 32 at 128 rows give 96 workgroups); fewer rows and keys as heads grow, to fit,
// and where registers are fewest. Mali, spills and fills: heads of 16 with 64 keys 2 to 174, with 32 up to 2, 16 rows
// with 16 keys none, 4 and 8 rows 2; heads of 96 and 128 in fp16 with 16 rows 3 to 8, with 8 none.
SdpaBlocks sdpa_blocks(const SdpaShape& shape, const Features& features) {
  const auto e_vec4s = static_cast<uint32_t>(ceil_div(shape.e, 4)),
             v_vec4s = static_cast<uint32_t>(ceil_div(shape.ev, 4));
  SdpaBlocks b{std::bit_ceil(static_cast<uint32_t>(std::min<int64_t>(shape.rows, 16))), shape.rows == 1 ? 128u : 64u,
               false};
  const uint32_t groups = std::max(e_vec4s, v_vec4s);
  const bool least = takes_least_tiles(features);
  b.rows = std::max(1u, std::min(b.rows, std::bit_floor(std::max(1u, (least ? 256 : 512) / groups))));
  if (features.cpu) return fit_to_cpu(b, v_vec4s);
  if (b.rows == 1) return b;
  if (least && groups <= 4) b.rows = 16;
  for (SdpaBlocks s = {b.rows, !least ? 64u : groups > 4 ? 32u : 16u, true}; s.keys >= 8; s.keys /= 2) {
    const bool crowded = s.keys * groups > most_loads(shape.dtype, features) * s.lanes;
    if (!crowded && shared_bytes(s, e_vec4s, v_vec4s) <= features.max_shared_bytes) return s;
  }
  return b;
}

std::optional<SdpaFragments> sdpa_fragments(const SdpaShape& s, const Features& features) {
  const bool split = s.dtype == DType::f32;
  constexpr int64_t kMost = 128;  // elements whose sums stay in registers
  if (!has_matrices(features) || !features.has(Feature::fragments) || features.subgroup_size != 32 ||
      !features.has(Feature::subgroup_shuffle) || std::max(s.e, s.ev) > kMost)
    return std::nullopt;
  if (split && (s.int8_rows || !features.has(Feature::split))) return std::nullopt;
  const auto e_pitch = static_cast<uint32_t>(ceil_div(s.e, 16) * 2 + 1),
             v_pitch = static_cast<uint32_t>(ceil_div(s.ev, 16) * 2 + 1);
  // Subgroups share the keys they load; fewer where workgroups would be too few. H200 (132 multiprocessors), us with 8
  // subgroups and 64 keys, 8 and 32, 4 and 32, 2 and 32. 32 heads over 8, 2048 rows, causal: heads of 64 106, 83, 90,
  // -; of 128 163, 186, 196, -. 512 rows: 16.8, 19.8, 17.6, 17.7; 24.6, 25.5, 23.4, 28.7. 8 heads of 128, 256 rows,
  // causal: 15.0, -, 13.5, 13.9 (sdpa_matrix.glsl: 22.6); 12 heads of 64, 197 rows: -, -, 9.6, 9.4 (14.0).
  // Where each workgroup has a multiprocessor to itself, more keys at once save steps: with 4 subgroups and 32, 64 and
  // 128 keys, 6 heads of 64, 197 rows 9.5, 8.3, 7.8; 12 heads of 32, 128 rows and a mask 9.7, 6.9, 6.6. With 128, where
  // workgroups share one, the 32 heads of 512 rows take 77.
  // fp32, split, with 8 subgroups and 32 keys, 4 and 32, 4 and 64, and sdpa.glsl: 12 heads of 32, 128 rows 13.2, 11.3,
  // 10.2, 11.5, but with a mask, in MiniLM, 4 and 32 take 2 us less than 4 and 64; 6 heads of 64, 197 rows 25.0, 20.9,
  // 27.2, 21.7; 384 heads of 32, 128 rows 40 with 8 and 32, 158 of sdpa.glsl.
  // Larger heads likewise, with 8 and 32, 4 and 32, and sdpa.glsl: prompts of 32 heads of 128 over 8, 128 rows -, 26.9,
  // 33.8, 512 rows 81, 87, 344; 8 over 2, 2048 rows 240 to 253, 226, 1246; 8 heads of 128, 128 rows -, 21.4, 22.4;
  // heads of 80: 12 of 197 rows -, 25.3, 52.8, of 1024 98.5, 114, 662, 16 of 257 -, 31.2, 89.0, 64 of 257 63, 71, 279;
  // 12 of 96, 256 rows -, 33.3, 60.4. Few rows, with 4 and 32, 2 and 32, 2 and 16, and sdpa.glsl: 9 rows after 500 of
  // 32 heads of 128 over 8 58, 105, 72, 74, 20 rows 58, 106, 72, 83; 24 rows of 16 heads of 80 28.1, 39, 45, 30.8; 20
  // of 128 of 128 30, 53, 38, 75. Blocks of 16 keys, and two in shared memory at a time, took as long or longer.
  const bool wide = std::max(s.e, s.ev) > 64;
  if (const auto own = own_keys(s, features, 2 * v_pitch - 1)) return own;
  if (s.rows < kFewRows) return std::nullopt;
  const uint32_t least = split && wide ? 4 : 2;
  for (uint32_t subgroups = 8; subgroups >= least; subgroups /= 2) {
    const bool alone = subgroups == 4 && !wide && !split && s.heads * ceil_div(s.rows, 64) <= features.filling(128);
    SdpaFragments found{subgroups, alone || (wide && !split && subgroups == 8) ? 64u : 32u, 0};
    // Queries that are split go from global memory to registers.
    const uint32_t parts = split ? 2 : 1, sizes = split ? subgroups * 8 : 0,
                   queries = split ? 0 : found.rows() * e_pitch;
    found.shared = std::max({queries, parts * found.keys * (e_pitch + v_pitch), found.rows() * 5});
    const bool fits =
        subgroups * 32 <= features.max_invocations && found.shared * 16 + sizes <= features.max_shared_bytes;
    const int64_t filling = features.filling(split && wide ? 64 : 128);
    const bool few =
        s.rows <= found.rows() / 2 || (subgroups == 8 && s.heads * ceil_div(s.rows, found.rows()) <= filling);
    if (fits && (!few || subgroups == least)) return found;
  }
  return std::nullopt;
}

std::optional<SdpaMatrices> sdpa_matrices(const SdpaShape& shape, const Features& features) {
  if (!has_matrices(features) || shape.rows < kFewRows || shape.dtype != DType::f16) return std::nullopt;
  for (const bool roomy : {true, false}) {
    for (const MatrixShape& m : features.matrix_f16) {
      if (m.m == 0) break;
      if (m.n % 8 != 0 || m.k % 8 != 0 || features.subgroup_size % m.m != 0) continue;
      for (const uint32_t keys : {64u, 32u})
        if (const auto matrices = with_keys(keys, m, shape, features, roomy)) return matrices;
    }
  }
  return std::nullopt;
}

}  // namespace pumice::engine
