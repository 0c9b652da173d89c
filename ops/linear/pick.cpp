// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/pick.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "ops/conv/channels_last_kernels.h"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/packed_weight.h"  // quantized
#include "ops/linear/pick_int8.h"
#include "ops/linear/registers.h"
#include "ops/linear/shared_rows.h"
#include "ops/linear/tuned.h"

// Every threshold says which measurement set it.
namespace pumice::engine {
namespace {

int64_t workgroups(const Tile& tile, int64_t batch, int64_t m, int64_t n) {
  return batch * ceil_div(m, tile.bm) * ceil_div(n, tile.bn);
}

// Fewer workgroups than this leave most of the device idle. CPU: lavapipe on 2 cores, one each.
int64_t fill(const Features& features) {
  return features.cpu ? features.units() : features.filling(128);
}

// Rows of x up to which the GEMV is fastest. H200, 16 rows, 4096 -> 14336: 113 us against 203 of the best tile; 32
// rows: 221 against 206.
constexpr int64_t kGemvRows = 16;

// Where no tile gives enough workgroups, passes of a GEMV are fastest up to this many rows, for every weight, or up
// to this many multiplications: later passes read the weights from the cache. H200: 64 x 14336 -> 4096 448 us against
// 500, 128 rows 888 against 703; 256 x 1536 -> 384 27 us against 63.
constexpr int64_t kPassesRows = 64;
constexpr int64_t kPassesWork = int64_t{1} << 28;

// Rows of a pass. H200, MiniLM: 4 beat 8 up to 128 rows (128 x 384 -> 384 7.6 us against 8.4), 8 beat 4 at 256 (1536 ->
// 384 27 against 31); 16 x 4096 -> 14336 8 rows.
uint32_t pass_rows(int64_t m, int64_t n, int64_t k) {
  return m <= 128 && n * k < (int64_t{1} << 22) ? 4 : 8;
}

// Two row panels in a workgroup halve the work on x; one row panel leaves more workgroups. H200, 4096 -> 14336 and
// back, us: one row 18.8 and 18.9 against 19.5 and 21 of one row panel, 2 rows 23.4 and 20.8 against 28.1 and 27, 4
// rows 31.3 and 27.2 against 35; 8 rows run out of registers. MiniLM (fewer invocations) loses 5 % at 16 tokens.
const LinearKernel& gemv(uint32_t rows, const LinearShape& s, const Features& features) {
  const int64_t enough = features.filling(1 << 16);
  const LinearKernel* one = nullptr;
  while (!holds_pass(rows, s.dtype, features)) rows /= 2;
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.family != Family::gemv || kernel.rows != rows) continue;
    if (kernel.panels == 1) one = &kernel;
    const int64_t groups = ceil_div(ceil_div(s.n, 16), kernel.panels) * ceil_div(s.m, rows);
    const bool held = kernel.panels == 2 && holds_two_panels(rows, s, features);
    if (held && groups * gemv_least_lanes(kernel, s.k, features) >= enough) return kernel;
  }
  return *one;
}

// `more`: an invocation holds as much beside the sums.
const LinearKernel& tile_kernel(int64_t batch, int64_t m, int64_t n, const Features& features, uint32_t sums,
                                bool more) {
  const LinearKernel &least = linear_kernel("tile2x4"), *last = nullptr;
  if (more && takes_least_tiles(features) && fits(least, WeightType::f32, features)) return least;
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.family != Family::tiled || &kernel == &least) continue;
    const Tile& tile = kernel.tile;
    last = &kernel;
    const bool half_empty = m <= tile.bm / 2 && tile.bm > 32;
    if (sums * tile.tm * tile.tn > most_sums(features)) continue;
    if (tile.bm == 128 && !features.cpu) continue;  // H200, 512 rows: 2228 us against 1911 of 64 x 128 (4096 -> 14336)
    if (fits(kernel, WeightType::f32, features) && !half_empty && workgroups(tile, batch, m, n) >= fill(features))
      break;
  }
  return *last;
}

// Where rows of x are made by a layer norm in the kernel, workgroups of two panels make each of them half as often.
// H200, us of gemvf8 or gemvf16, gemvf8x2 and gemvf16x2: int4, 128 x 384 -> 384 6.2, 5.9, 6.3, 384 ->
// 1536 8.1, 7.7, 8.4; MiniLM at 1 x 128 233, 226, 234; fp16, ViT-small, 197 rows 477, 466, 458.
bool may_make_norms(const LinearShape& s, const Features& features) {
  return s.m > 32 && s.k % 64 == 0 && ceil_div(s.n, 32) * ceil_div(s.m, 8) <= features.filling(1200);
}

// One row of x by workgroups that fill a multiprocessor each, or null. H200, us of the best other and of
// (split_)gemvf1:
//                    q4 g32, fp32   q4 g32, fp16   q4 g128, fp32  q4 g128, fp16  q8, fp32     q8, fp16
//   2048 -> 2048     5.0   4.2      4.6   4.2
//   2048 -> 3072     5.8   4.9      5.0   4.7
//   2048 -> 8192     7.6   6.8      6.7   6.4
//   2048 -> 16384    9.7   9.3      8.8   8.9      8.8   8.7      8.5   8.7      12.4  11.9   11.6  12.0
//   4096 -> 4096     7.5   6.9      6.8   6.3      7.0   6.4      6.6   6.3      8.3   8.0    7.8   7.6
//   4096 -> 6144     10.7  8.4      7.8   7.9
//   4096 -> 8192     9.8   9.4      8.8   8.7
//   4096 -> 14336    14.0  13.1     12.7  12.3     12.8  12.4     12.4  12.0     19.3  17.4   17.3  17.3
//   4096 -> 28672    24.0  22.0     21.7  21.8
//   7168 -> 4096     9.0   10.1     8.8   9.3
//   2048 -> 128256   46.2  51.1     41.8  46.5
//   2048 -> 128256   46.2  44.4     41.0  39.5
//   4096 -> 151936                  91.7  91.3
// 4096 -> 28672 in fp16 19.8 since two pairs of tiles are in flight. Of more than 16 row panels for each
// multiprocessor, those whose last subgroups are nearly all at work.
constexpr int64_t kMostRowColumns = 4096, kLeastRowWeights = 1 << 22, kRowSubgroups = 32;
const LinearKernel* pick_row(const char* name, const LinearShape& s, const Features& features) {
  const LinearKernel& kernel = linear_kernel(name);
  if (s.m != 1 || s.layer_norm || s.integers || s.k > kMostRowColumns || s.n * s.k < kLeastRowWeights) return nullptr;
  if (s.fused && kernel.input == Input::splits) return nullptr;
  const int64_t panels = ceil_div(s.n, 16), units = features.units();
  if (panels > (s.weight == WeightType::q4 ? 16 : 8) * units) {
    const int64_t at_once = kRowSubgroups * units, turns = ceil_div(panels, at_once);
    if (s.fused || s.weight != WeightType::q4 || panels * 10 < turns * at_once * 9) return nullptr;
  }
  return unsupported_reason(kernel, s, features).empty() ? &kernel : nullptr;
}

// Kernels that use the places of matrix elements in a subgroup (Feature::fragments), or null. H200, int4 in groups of
// 32, us for 4096 -> 14336 and back:
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
// Passes of few rows win where there are few tiles, for any number of rows: 512 x 2048 -> 512 10.6 us against 29 of the
// best tile. Two panels a workgroup spare work where there are invocations enough, else one row panel and 8 rows leave
// more of them: us of gemvf8, gemvf16, gemvf16x2: 16 x 4096 -> 4096 9.4, 9.9, 10.9; 128 x 4096 -> 4096 45, 40, 30; one
// row, 4096 -> 4096 8.5 and 9.1 of gemvf8x2, 4096 -> 14336 15.8 and 12.9. Of more rows and a small weight, which lie in
// the cache, 16 rows and two panels read the least of it. us of gemvf8, gemvf16, gemvf16x2, fp16: 49 x 768 -> 3072 7.1,
// 6.6, 6.0, back 8.1, 8.0, 6.9; 196 x 384 -> 1536 6.9, 6.2, 5.8, back 7.3, 7.0, 6.7; 784 x 192 -> 768 8.0, 6.4, 5.8,
// back 7.3, 6.6, 6.1; 128 x 384 -> 384 4.0, 3.8, 3.9; 64 x 2048 -> 2048 9.2, 8.6, 10.6. int4: 49 x 768 -> 3072 6.2,
// 6.1, 5.5; 128 x 1536 -> 384 5.1, 5.3, 4.6; 128 x 2048 -> 512 6.3, 6.6, 5.4; 784 x 192 -> 768 6.9, 5.9, 5.4. Weights
// that tiles of fragments do not take: int8, gemvf16x2 and the best of matrix*: 4096 -> 14336, 64 rows 55, 66; 100 rows
// 88, 94; 128 103, 96; 4096 -> 8192, 128 rows 62, 66.
const LinearKernel* pick_fragments(const LinearShape& s, const Features& features) {
  if (s.dtype != DType::f16 && !s.integers) return nullptr;  // none takes it, and a reason why takes long to write
  if (const LinearKernel* row = s.weight == WeightType::q4 ? pick_row("gemvf1", s, features) : nullptr) return row;
  const int64_t enough = features.filling(1 << 16);
  const auto tile_groups = [&](const char* name) { return workgroups(linear_kernel(name).tile, 1, s.m, s.n); };
  const auto invocations = [&](int64_t rows, int64_t panels) {
    return ceil_div(s.n, 16 * panels) * ceil_div(s.m, rows) *
           gemv_least_lanes(linear_kernel(panels == 2 ? "gemvf8x2" : "gemvf8"), s.k, features);
  };
  const char* name = "gemvf8";
  const bool tiles = s.m > 128 || unsupported_reason(linear_kernel("fragments64x128"), s, features).empty();
  if (s.m > 32 && tiles && tile_groups("fragments64x128") >= features.filling(96)) {
    name = tile_groups("fragments64x256") >= features.filling(264) ? "fragments64x256" : "fragments64x128";
  } else if (s.m > 64 || (s.m > 32 && s.n * s.k < 1 << 22)) {
    const int64_t groups = ceil_div(s.n, 32) * ceil_div(s.m, 16);
    name = groups >= features.filling(160) || s.k > 1024 ? "gemvf16x2" : "gemvf16";
  } else if (s.weight != WeightType::f16 && invocations(s.m > 8 ? 16 : 8, 2) >= enough) {
    name = s.m > 8 ? "gemvf16x2" : "gemvf8x2";
  } else if (s.m > 8 && invocations(16, 1) >= 2 * enough) {
    name = "gemvf16";
  }
  if (s.layer_norm && may_make_norms(s, features)) {
    const bool halves = s.weight == WeightType::f16;
    if (const LinearKernel* shared = halves ? pick_shared_rows(false, s, features) : nullptr) return shared;
    name = halves ? "gemvf16x2" : "gemvf8x2";
  }
  const LinearKernel& kernel = linear_kernel(name);
  return unsupported_reason(kernel, s, features).empty() ? &kernel : nullptr;
}

// What a kernel that takes fp32 as two fp16 costs: workgroups that run at once with 132 multiprocessors, and what they
// take for 64 columns of k, where there is at most one for a multiprocessor, and where all are there.
struct SplitCost {
  const char* kernel;
  WeightType weight;
  int64_t resident;
  double alone_us, us;
};
constexpr SplitCost kSplitCosts[] = {
    {"split64x128", WeightType::q4, 264, 1.6, 1.6},         {"split_matrix64x128", WeightType::q8, 264, 1.55, 2.0},
    {"split_matrix64x64", WeightType::q8, 396, 1.15, 1.65}, {"split_matrix128x128", WeightType::f32, 132, 2.9, 3.35},
    {"split_matrix64x64", WeightType::f32, 264, 1.5, 2.05}, {"split64x256", WeightType::f32, 132, 2.2, 2.22},
};
// The dispatch before them and their ends; and for each element of x. H200: 4096 x 1536 -> 384 in one round of
// split64x256 77 us, 512 x 4096 -> 4096 155.
constexpr double kSplitUs = 8, kSplitElementUs = 2.5e-6;

// Kernels that make two fp16 of each fp32 themselves: what a dispatch and a million products take; the others take
// kWaitUs and 0.12 where these are of use. H200, int4 in groups of 32, us of the best other, split_gemvf8 and
// split_gemvf16x2:
//   rows  384 -> 384       384 -> 1536      1536 -> 384      2048 -> 2048
//   16    4.1  4.5  6.0
//   64                                                       33.9 18.8 15.7
//   128   6.5  5.1  6.2   13.3  8.1  7.4   14.3  8.1  8.0
//   197   8.8  5.7  6.5
//   512  14.8  8.1  7.4   16.0 19.8 14.6   56.2 20.3 15.4
// fp32 weights, us of the best other, split_gemvf8, split_gemvf8x2 and split_gemvf16x2:
//   rows  384 -> 384            384 -> 1536          1536 -> 384          768 -> 768          2048 -> 2048
//   16                                                                     9.3  6.1  6.7  7.9
//   32                                                                                        20.3 13.0 11.2 12.3
//   128                                                                   15.8 10.4  8.2  8.8
//   197   11.0  6.6  6.8  8.1  20.8 12.5 12.3 10.0  22.2 11.6 11.2 12.4
//   512                                             56.2 23.7 19.9 15.4
// 128 x 768 -> 3072 25.7, 24.4, 20.9, 17.7; 512 x 3072 -> 768 76.4, 79.6, 60.5, 49.3.
// With fewer rows weights are read once, and the others are as fast.
constexpr double kWaitUs = 4.0;
struct OwnSplitCost {
  const char* kernel;
  bool quantized;  // the weight
  double wait_us, us;
};
constexpr OwnSplitCost kOwnSplitCosts[] = {{"split_gemvf8", true, 4.3, 0.052},
                                           {"split_gemvf16x2", true, 5.6, 0.031},
                                           {"split_gemvf8", false, 4.9, 0.0625},
                                           {"split_gemvf8x2", false, 5.6, 0.047},
                                           {"split_gemvf16x2", false, 6.2, 0.0365}};
constexpr int64_t kLeastOwnSplitRows = 16;

// fp32 weights by 16 rows a pass and two panels: not of so few workgroups (two for each multiprocessor), which wait,
// nor, with a layer norm of x in their registers, of more than run at once (four). H200, 197 rows, us of split_gemvf8x2
// and split_gemvf16x2: 1536 -> 384 12.5, 14.9; with the norm 384 -> 1152 13.9, 11.8, 384 -> 1536 14.6, 18.4 (without it
// and 5.2 of its dispatch 12.1).
bool suits_16_rows(const LinearShape& s, const Features& features) {
  const int64_t groups = ceil_div(s.m, 16) * ceil_div(s.n, 32);
  return groups > features.filling(264) && (!s.layer_norm || groups <= features.filling(528));
}

const LinearKernel* pick_own_split(const LinearShape& s, const Features& features, double best_us) {
  const LinearKernel* best = nullptr;
  const double millions = 1e-6 * 132 / features.units() * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
  for (const OwnSplitCost& cost : kOwnSplitCosts) {
    const LinearKernel& kernel = linear_kernel(cost.kernel);
    const double us = cost.wait_us + cost.us * millions;
    if (cost.quantized != quantized(s.weight) || s.m < kLeastOwnSplitRows || us >= best_us ||
        (!cost.quantized && kernel.rows == 16 && !suits_16_rows(s, features)) ||
        !unsupported_reason(kernel, s, features).empty())
      continue;
    best = &kernel, best_us = us;
  }
  const LinearKernel* shared = best != nullptr ? pick_shared_rows(true, s, features) : nullptr;
  return shared != nullptr ? shared : best;
}

// Up to 16 rows and quantized weights. H200, int4 in groups of 32 with fp32 scales, us of the best gemv*, split_gemvf4,
// split_gemvf4x2 and the best of 8 or 16 rows a pass (with more than four rows split_gemvf4* take two passes):
//   rows  4096 -> 14336             14336 -> 4096             4096 -> 4096         2048 -> 2048
//   1     18.6  18.1  15.2          19.3  19.1  14.9                7.7  7.6       5.4  5.0  5.3  6.7
//   4     31.3  22.2  18.0                                                         6.4  5.4  5.8  6.8
//   8     54.2        34.5  20.1    53.0  42.9  30.9  31.2    19.6 13.8 10.6 12.0  7.8  6.2  6.0  7.0
//   16    113               31.4
// (20.1 and 31.4: split_gemvf8x4 and split_gemvf16x4; split_gemvf8x2 24.2, split_gemvf16x2 37.7). One row: 2048 ->
// 128256 57.5, 46.3 of split_gemvf4x2; int8 with one scale a row, 4096 -> 14336, 21.8, 17.7; in groups of
// 32 22.3, 19.6; int4, 384 -> 1536 4.0, 4.8 of split_gemvf4, 512 -> 2048 4.3, 4.5.
constexpr int64_t kLeastFewSplitWeights = 1 << 21, kMostFewSplitRows = 16;
const LinearKernel* pick_few_split(const LinearShape& s, const Features& features) {
  if (const LinearKernel* row = pick_row("split_gemvf1", s, features)) return row;
  if (s.m > kMostFewSplitRows || s.n * s.k < kLeastFewSplitWeights || s.fused) return nullptr;
  if (!quantized(s.weight) || (s.m > 4 && s.weight != WeightType::q4)) return nullptr;
  const bool many = ceil_div(s.n, 64) >= features.filling(200);
  const int64_t lanes = ceil_div(s.n, 32) * gemv_least_lanes(linear_kernel("split_gemvf4x2"), s.k, features);
  const char* name = "split_gemvf4x2";
  if (s.m > 8) {
    name = many ? "split_gemvf16x4" : "split_gemvf16x2";
  } else if (s.m > 4 && many) {
    name = "split_gemvf8x4";
  } else if (s.m <= 4 && lanes < features.filling(1 << 16)) {
    name = "split_gemvf4";
  }
  const LinearKernel& kernel = linear_kernel(name);
  return unsupported_reason(kernel, s, features).empty() ? &kernel : nullptr;
}

// Of those the fastest, or null where the others are. The dispatch before them, and their ends, take 8 us; the others
// take 0.12 us or more for a million products where that matters. H200, us of the pick without these kernels and of the
// best of them. int4 in groups of 32:
//   rows  384 -> 1536   1536 -> 384   2048 -> 2048   4096 -> 4096   4096 -> 14336
//   16    17.1   5.6    43.2   6.8    56.7  12.9     103   32.7     104   103
//   32    17.6   6.6    43.9   7.2    59.9  19.1     106   60.8     106   223
//   64    18.3   9.5    44.9   8.8    60.4  38.3     107   186      106   314
//   128   18.3  14.0    45.2  14.8    58.0  92.4     107   237      132   493
//   512   18.8  31.7    48.4  70.6    61.4  167      -     486      432   1941
//   2048                                                            1642  6939
// (split64x128 first). int8, one scale a row, split_matrix64x64, split_matrix64x128 and the best other:
//   32    14.8 17.4 6.5   32.5 41.3 7.5    41.3 51.9 19.0   71.7 95.4 60.4   87.0 99.3 231
//   128   15.3 19.1 13.7  33.5 42.6 13.7   41.7 53.9 93.0   78.5 99.6 178    202 132 512
//   512   17.7 19.9 29.2  36.2 45.8 70.2   -                208 139 504      543 494 1994
// fp32, split_matrix64x64, split_matrix128x128 and the best other:
//   32    17.4 25.9 7.6   41.7 74.6 8.5    53.0 99.4 20.1   97.6 187 64.9    129 183 186
//   128   18.1 30.5 16.5  42.3 83.2 14.8   55.1 119 73.8    103 224 167      272 214 465
//   512   23.3 31.6 29.4  45.3 91.3 54.9   -                313 231 466      915 860 1849
// fp32 weights that are kept as two fp16, split64x256, split_matrix64x64, split_matrix128x128 and split_gemvf16x2:
//   128   80.2 51.7 117 29.2 (2048 -> 2048)    150 96.5 219 86.0    - 259 201 306
//   256                                        152 158 219 167      298 497 427 577
//   512   82.5 83.0 114 88.1                   155 275 216 329      580 915 826
//   2048  162 275 226 324                      -                    2028 - 2765
// (4096 x 384 -> 1536 63.3, 89.8, 79.8, 92.6, back 77.1, 107, 95.2, 96.5.)
// int8 in groups of 32, split_matrix64x128, 4096 -> 14336: 128 rows 179, 512 rows 651, 2048 rows 2277.
const LinearKernel* pick_split(const LinearShape& s, const Features& features) {
  if (!features.has(Feature::fragments)) return nullptr;  // devices that were measured
  if (const LinearKernel* few = pick_few_split(s, features)) return few;
  const LinearKernel* best = nullptr;
  double best_us =
      0.12e-6 * 132 / features.units() * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  for (const SplitCost& cost : kSplitCosts) {
    const LinearKernel& kernel = linear_kernel(cost.kernel);
    if (cost.weight != s.weight || !unsupported_reason(kernel, s, features).empty()) continue;
    const int64_t groups = workgroups(kernel.tile, 1, s.m, s.n);
    const double round_us = groups <= features.units()
                                ? cost.alone_us
                                : cost.us * static_cast<double>(ceil_div(groups, features.filling(cost.resident)));
    const double scales = s.weight == WeightType::q8 && s.group != 0 ? 1.33 : 1;
    const double us = kSplitUs + kSplitElementUs * static_cast<double>(s.m) * static_cast<double>(s.k) +
                      scales * round_us * static_cast<double>(ceil_div(s.k, 64));
    if (us < best_us) best = &kernel, best_us = us;
  }
  if (best == nullptr) best_us += kWaitUs;
  const LinearKernel* own = pick_own_split(s, features, best_us);
  return own != nullptr ? own : best;
}

}  // namespace

// H200, as above: 64 rows 64 us in tiles of 64 x 64, 102 of 128 x 128; 128 rows 101, 104; 256 rows 167, 137; 512 rows
// 331, 240 (back 333, 326); 2048 rows 806 and 788 of 128 x 128.
const LinearKernel* pick_matrix(const LinearShape& s, const Features& features) {
  if (s.m <= 16 || s.dtype != DType::f16) return nullptr;
  for (const char* name : {"matrix128x128", "matrix64x64", "matrix32x32", "matrix16x32"}) {
    const LinearKernel& kernel = linear_kernel(name);
    if (!unsupported_reason(kernel, s, features).empty()) continue;
    if (kernel.tile.bm == 128 && workgroups(kernel.tile, 1, s.m, s.n) < features.filling(128)) continue;
    if (!holds_matrices(kernel.tile, features)) continue;
    return &kernel;
  }
  return nullptr;
}

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
  if (const LinearKernel* kernel = pick_split(s, features)) return *kernel;
  if (s.m <= 8 && (s.m <= 4 || pass_rows(s.m, s.n, s.k) == 8))
    return gemv(std::bit_ceil(static_cast<uint32_t>(s.m)), s, features);
  const LinearKernel& tiled = tile_kernel(1, s.m, s.n, features, 1, quantized(s.weight));
  const bool few =
      workgroups(tiled.tile, 1, s.m, s.n) < fill(features) && (s.m <= kPassesRows || s.m * s.n * s.k <= kPassesWork);
  if (s.m <= kGemvRows || few) return gemv(pass_rows(s.m, s.n, s.k), s, features);
  return tiled;
}

const LinearKernel* forced_linear(const Features& features) {
  const bool is_linear = !features.kernel.empty() && !is_conv_kernel(features.kernel);
  return is_linear ? &linear_kernel(features.kernel) : nullptr;
}

const LinearKernel& choose_linear(const LinearShape& shape, const Features& features) {
  const LinearKernel* kernel = forced_linear(features);
  if (kernel == nullptr) kernel = tuned_linear(shape, features);
  if (kernel == nullptr) return pick_linear(shape, features);
  const std::string reason = unsupported_reason(*kernel, shape, features);
  if (!reason.empty()) {
    fail(Code::InvalidArgument, Stage::plan, "kernel", "kernel '%s' cannot run here: it %s", features.kernel.c_str(),
         reason.c_str());
  }
  return *kernel;
}

bool is_tuned(const LinearShape& shape, const Features& features) {
  return forced_linear(features) == nullptr && tuned_linear(shape, features) != nullptr;
}

// H200, matrix128x128, us for 512, 513 and 520 x 4096 -> 14336: int4 233, 245, 246 (in tiles alone 349), int8 228, 246,
// 246 (337).
const LinearKernel* pick_matrix_tail(const LinearKernel& kernel, LinearShape s, const Features& features) {
  constexpr int64_t kMost = 8;                        // a pass of a GEMV
  const bool same_x = kernel.input == Input::floats;  // a pass reads what the tiles read
  if (kernel.family != Family::matrix || !same_x || s.m < kernel.tile.bm) return nullptr;
  s.m %= kernel.tile.bm;
  s.integers = false;  // numbers already
  return s.m == 0 || s.m > kMost ? nullptr : &pick_linear(s, features);
}

Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features, uint32_t sums, bool more) {
  return tile_kernel(batch, m, n, features, sums, more).tile;
}

}  // namespace pumice::engine
