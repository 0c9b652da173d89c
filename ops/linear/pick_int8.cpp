// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/pick_int8.h"

#include <initializer_list>

#include "base/divide.h"
#include "ops/linear/pick.h"
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

// Measured in pick_integers. kSmallWeight, kMediumWeight: elements of a weight up to which dot products are faster than
// matrices, for 16 and for 4 rows of x. kPassesWork: multiplications up to which passes of few rows are faster than
// tiles. kIdleTiles: so few tiles of 64 x 64, with 132 multiprocessors, that passes are always faster.
constexpr int64_t kSmallWeight = int64_t{1} << 21, kMediumWeight = int64_t{1} << 24;
constexpr int64_t kPassesWork = int64_t{3} << 30, kIdleTiles = 128;

// Row panels of the busiest multiprocessor, in workgroups of so many.
int64_t busiest(int64_t n, int64_t panels, const Features& features) {
  return panels * ceil_div(ceil_div(n, 16 * panels), int64_t{features.units()});
}

// One row of x, which a workgroup quantizes once for four or seven row panels, where those are enough for all
// multiprocessors; of the two that which leaves the busiest of them less to do. H200, us of the best of dot1 and
// dot1x2, of dot1x4 and dot1x7:
//                    q4 g32, fp16       q4 g128, fp16      q4 g32, fp32       q8, fp16
//   4096 -> 4096     6.9  7.9  9.7      6.4  7.5  8.8      7.4  7.9  9.8
//   4096 -> 6144     9.4  8.5  9.8      8.8  8.0  8.9      9.7  8.4  10.0     11.8 10.1 10.7
//   4096 -> 8192     11.2 9.2  9.9      10.3 8.7  9.1      11.6 9.2  10.5     14.0 11.5 12.3
//   4096 -> 12288    11.8 11.6 10.9     11.2 10.6 10.6     12.3 12.0 12.0     15.3 17.4 16.0
//   4096 -> 14336    13.7 11.8 11.6     13.1 11.1 11.5     14.3 12.6 12.8     18.9 18.7 17.7
//   4096 -> 16384    14.1 12.6 18.7     13.5 11.7 17.3     14.6 13.7 19.3
//   4096 -> 28672    22.9 21.0 20.9     21.5 19.0 19.8     23.7 22.2 22.7
//   2048 -> 8192     6.6  6.7  7.4      6.2  6.6  6.5      7.4  6.6  7.3
//   2048 -> 16384    10.2 8.5  12.6     9.5  8.0  11.1     10.5 9.0  12.4
//   2048 -> 128256   59.4 43.5 46.9     52.4 39.5 43.6     57.3 45.5 50.2
constexpr int64_t kLeastWide = 24 << 20, kMostWideColumns = 4096;
const LinearKernel* pick_wide(const LinearShape& s, const Features& features) {
  if (features.few_registers || s.k > kMostWideColumns || s.n * s.k < features.filling(kLeastWide)) return nullptr;
  const int64_t four = busiest(s.n, 4, features);
  if (s.weight == WeightType::q8 && four > 4) return nullptr;
  const bool seven = s.dtype == DType::f16 && s.group == 32 && busiest(s.n, 7, features) < four;
  const LinearKernel& kernel = linear_kernel(seven ? "dot1x7" : "dot1x4");
  return unsupported_reason(kernel, s, features).empty() ? &kernel : nullptr;
}

}  // namespace

// The measurements that set the thresholds. Unless a row names something else: us on an H200, fp16, quantization of x
// included, q4 in groups of 32.
//   one row                  dot1   dot1x2   others
//   q4 4096 -> 14336         18.6   17.9     two dispatches with the GEMV of words 19.8
//   q4 g128 4096 -> 14336    17.6   16.3
//   q4 g128 4096 -> 28672    27.8   25.0
//   q4 g128 14336 -> 4096    21.9   17.7
//   q4 4096 -> 4096          9.1    9.1
//   q4 g128 4096 -> 6144     9.7    13.4
//   q8 4096 -> 14336         22.5   23.0     gemvf8x2 23.8
//   q8 14336 -> 4096         26.9   21.5
//   few rows                 dot1   dot1x2   dotw4   gemvf*
//   q8 4 x 2048 -> 512       6.3    6.3      10.9    14.2
//   q8 16 x 2048 -> 512      7.7    7.1      11.2    14.5
//   q4 4 x 2048 -> 512       6.2    6.4              13.4
//   q4 16 x 2048 -> 512      8.1    7.5              13.6
//   bytes 64 x 2048 -> 512                   11.5    15.6
//   q4 g128 4 x 4096 -> 4096 17.4   15.2     15.9    14.6
//   q8 4 x 4096 -> 4096      16.3   15.6     17.0    15.6
//   bytes 4 x 4096 -> 4096   12.0   11.4     14.3    16.5 (to bytes; 12.3, 11.8, 14.6, 13.1 to fp16)
//   bytes 4 x 14336 -> 4096  46     34               26.4
//   q8 f32 4 x 4096 -> 4096                  16.3    14.8
//   q8 f32 16 x 4096 -> 4096                 31      16
//   q8 f32 2 x 4096 -> 14336                 31      25
//   q8 f32 16 x 4096 -> 14336                83      30
//   q8, more rows            gemvf16x2   int8_64x64
//   32; 64 x 4096 -> 4096    18; 26      50; 52
//   128 x 4096 -> 4096       40.6        52.9
//   64; 128 x 4096 -> 8192   41; 68      53; 54
//   32; 64 x 4096 -> 14336   42; 62      50; 55
//   64; 128 x 14336 -> 4096  65; 113     152; 155
//   512 x 2048 -> 512        17.4        31.5
//   4096 -> 14336, one scale a row   int8_128x128   int8_128x128d2   int8_64x128
//   q8, 512; 2048 rows               137; 451       222 (spills); 761   201; 593
//   q4, 512; 2048 rows               130; 428       127; 410
//   4096 -> 14336, q4 g128           int8g_64x128   int8g_128x128    fragments64x256
//   512; 2048 rows                   235; 852       261; 905         198; 648
//   groups of 32, 512 rows           310                             203
// Tiles of 16 rows of int8 matrices, up to eight of them prefetched, take 54 and more for 16 x 4096 -> 14336. CPU:
// lavapipe, ms for 2048 x 2048 in groups of 32: one row dotw1 2.8, gemvr1 1.1; eight rows dotw8 7.3, gemvr8 3.4; 128 98
// and 46.
const LinearKernel* pick_integers(const LinearShape& s, const Features& features) {
  const auto first = [&](std::initializer_list<const char*> names) -> const LinearKernel* {
    for (const char* each : names) {
      const LinearKernel& kernel = linear_kernel(each);
      const bool matrices = kernel.family == Family::matrix_int8 || kernel.family == Family::matrix_int8_groups;
      if (matrices && !holds_matrices(kernel.tile, features, s.group != 0 ? 2 : 1)) continue;
      if (unsupported_reason(kernel, s, features).empty()) return &kernel;
    }
    return nullptr;
  };
  if (features.cpu) return nullptr;
  const bool textures = s.textures || s.weight_texture;
  if (s.m == 1) {
    if (textures) return first({"dotw1"});
    if (const LinearKernel* wide = pick_wide(s, features)) return wide;
    const bool deep = s.k >= 8192 && s.n > 2048 && s.n <= 4096;
    return deep ? first({"dot1x2", "dot1"}) : first({"dot1"});
  }
  const bool fragments = unsupported_reason(linear_kernel("gemvf16x2"), s, features).empty();
  const bool small = s.n * s.k <= kSmallWeight;
  if (s.m <= 16 && small && !textures) {
    if (const LinearKernel* dot = first({s.m <= 4 ? "dot1" : "dot1x2"})) return dot;
  }
  if (s.m <= 4 && s.n * s.k <= kMediumWeight && !textures) {
    if (const LinearKernel* dot = first({"dot1x2"})) return dot;
  }
  const bool bytes = s.group == 0 && s.weight == WeightType::q8;
  if (s.m <= 64 && bytes && small) return first({"dotw4"});
  if (s.m <= 16) return bytes && !fragments ? first({"dotw4"}) : nullptr;
  const Tile& large = linear_kernel("int8_128x128").tile;
  const bool many = s.m > large.bm / 2 && ceil_div(s.m, large.bm) * ceil_div(s.n, large.bn) >= features.filling(96);
  const bool idle = s.group == 0 && s.m <= 512 && ceil_div(s.m, 64) * ceil_div(s.n, 64) <= features.filling(kIdleTiles);
  const bool passes = idle || (s.m <= 128 && (s.group != 0 || s.m * s.n * s.k <= kPassesWork));
  if (!many && passes && fragments) return nullptr;
  const LinearKernel* matrix = nullptr;
  if (many) matrix = first({s.weight == WeightType::q4 ? "int8_128x128d2" : "int8_128x128"});
  if (matrix == nullptr) matrix = first({"int8_64x64", "int8_32x32", "int8_16x32"});
  if (matrix != nullptr) return matrix;
  // With groups, sums are scaled often: matrices of whole numbers in fp16 are faster where x is fp16, if any suits.
  const bool suits = features.has(Feature::fragments) || pick_matrix(s, features) != nullptr;
  if (!textures && suits && features.has(Feature::coopmat) && features.matrix_f16[0].m != 0 && s.dtype == DType::f16)
    return nullptr;
  if (const LinearKernel* groups = first({"int8g_64x128", "int8g_32x32", "int8g_16x32n16", "int8g_16x32"}))
    return groups;
  const uint32_t most = most_sums(features) / (s.group != 0 ? 2 : 1);  // of whole numbers, and of scaled ones
  if (takes_least_tiles(features)) return first({"dot_tile2x4", "dot_tile32x64"});
  if (most < 32) return first({"dot_tile32x64"});
  return most < 64 ? first({"dot_tile64x64", "dot_tile32x64"})
                   : first({"dot_tile64x128", "dot_tile64x64", "dot_tile32x64"});
}

// H200, dq8ca_q8csw 513 x 4096 -> 14336: 189 us in tiles alone, 155 so, 136 of 512 rows; 8 rows
// more gain nothing.
const LinearKernel* pick_tail(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (kernel.family != Family::matrix_int8 || s.m < kernel.tile.bm) return nullptr;
  const int64_t tail = s.m % kernel.tile.bm;
  if (tail == 0 || tail > 4) return nullptr;
  const LinearKernel& gemv = linear_kernel(tail == 1 ? "dotw1" : "dotw4");
  return unsupported_reason(gemv, s, features).empty() ? &gemv : nullptr;
}

}  // namespace pumice::engine
