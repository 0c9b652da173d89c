// SPDX-License-Identifier: Apache-2.0
// Selection among the kernels that multiply 8-bit integers. Every threshold says what set it.
#include <algorithm>
#include <bit>
#include <vector>

#include "ops/common/divide.h"
#include "ops/common/linear_kernel.h"

namespace pumice {
namespace {

// Sums of so many products of signed bytes and differences of bytes stay within 32 bits.
constexpr int64_t kMaxWholeRow = 32768;

// See pick_integers: weights that dot products are done with before matrices have started, and multiplications up to
// which passes of few rows are ahead of tiles that leave most of the device idle.
constexpr int64_t kSmallWeight = int64_t{1} << 21, kPassesWork = int64_t{3} << 30;

uint32_t tiles(int64_t k) {
  return static_cast<uint32_t>(ceil_div(k, 64));
}

// The rows of x, and the partial sums (linear_dot_gemv.glsl).
uint32_t shared_bytes(const LinearKernel& kernel, int64_t k, uint32_t lanes) {
  return kernel.rows * (tiles(k) * 64 + kernel.strips * 16 * (lanes / 32 / kernel.strips + 1) * 16 + 12);
}

}  // namespace

// So many that a lane has about four tiles of its strip, and that all workgroups run at once (H200: 132 times 2048
// invocations), but not fewer than 128.
uint32_t dot_gemv_lanes(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  constexpr int64_t kInvocations = 300000;
  const uint32_t strips = kernel.strips;
  const int64_t groups = ceil_div(s.n, 16 * strips) * ceil_div(s.m, kernel.rows);
  uint32_t slots = std::max(std::bit_floor(std::max(tiles(s.k) / 4, 1u)), std::min(std::bit_ceil(tiles(s.k)), 4u));
  const auto too_large = [&](uint32_t n) {
    const uint32_t lanes = n * strips * 32;
    return lanes > 1024 || lanes > features.max_invocations ||
           shared_bytes(kernel, s.k, lanes) > features.max_shared_bytes || (n > 8 && groups * lanes > kInvocations);
  };
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * strips * 32;
}

uint32_t matrix_int8_lanes(const LinearKernel& kernel, const Features& features) {
  const Tile& t = kernel.tile;
  return t.bm / t.tm * (t.bn / t.tn) * features.subgroup_size;
}

// Rows of 64 bytes, half filled for matrices of 8 columns, and 16 of padding; and what a subgroup puts out at a time,
// with 32 of padding.
uint32_t matrix_int8_shared(const LinearKernel& kernel, const Features& features) {
  const Tile& t = kernel.tile;
  const uint32_t row = features.matrix_s8[0].k == 8 ? 144 : 80;
  return std::max((t.bm + t.bn) * row, t.bm / t.tm * (t.bn / t.tn) * features.matrix_s8[0].m * (t.tn + 8) * 4);
}

namespace {

std::string why_no_tile(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  // Rows of 64 bytes and 16 of sums, a scale and a zero point for each half of them.
  const uint32_t bytes = (kernel.tile.bm + kernel.tile.bn) * 80 + kernel.tile.bn * 16, lanes = kernel.tile.parts();
  if (s.group % 32 != 0) return format("takes groups of multiples of 32 columns, not of %u", s.group);
  if (lanes > features.max_invocations || bytes > features.max_shared_bytes)
    return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", lanes, bytes,
                  features.max_invocations, features.max_shared_bytes);
  return "";
}

std::string why_no_matrix(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const MatrixShape& shape = features.matrix_s8[0];
  const Tile& t = kernel.tile;
  if (shape.m == 0) return "needs cooperative matrices of signed bytes, which this device lacks";
  const bool groups = kernel.family == Family::matrix_int8_groups;
  if (!groups && s.group != 0) return "takes weights with one scale a row";
  if (groups && (s.group == 0 || s.group % 32 != 0)) return "takes groups of multiples of 32 columns";
  const uint32_t lanes = matrix_int8_lanes(kernel, features), quads = t.tn / 4;
  if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 4 != 0 || shape.k < 8 ||
      (groups ? 32 : 64) % shape.k != 0)
    return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
  if (lanes > features.max_invocations || t.bm * 4 % lanes != 0 || t.bn * 2 % lanes != 0 ||
      (features.subgroup_size % quads != 0 && quads % features.subgroup_size != 0))
    return format("does not divide among subgroups of %u", features.subgroup_size);
  // Of groups also a scale and a zero point for each half of a tile's rows, and the zero points of rows of x.
  const uint32_t bytes = matrix_int8_shared(kernel, features) + (groups ? t.bn * 16 + t.bm * 4 : 0);
  if (bytes > features.max_shared_bytes)
    return format("needs %u bytes of shared memory, the device has %u", bytes, features.max_shared_bytes);
  // lavapipe writes every product of a tile out: more of them take half a minute and more to compile.
  if (features.cpu && t.tm / shape.m * (t.tn / shape.n) > 2)
    return "has more matrices a subgroup than a CPU driver compiles in a reasonable time";
  return "";
}

}  // namespace

std::string why_not_integers(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  std::vector<Feature> needed = {Feature::int_dot};
  if (kernel.input == Input::x) needed.push_back(Feature::subgroup_arithmetic);
  const bool matrix = kernel.family == Family::matrix_int8 || kernel.family == Family::matrix_int8_groups;
  if (matrix) needed = {Feature::coopmat, Feature::memory_model, Feature::int8};
  for (const Feature feature : needed) {
    if (!features.has(feature))
      return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
  }
  if (kernel.input == Input::x && (s.textures || s.weight_texture)) return "reads x and the weight from buffers";
  if (matrix && s.weight_texture) return "reads the weight from a buffer";
  if (!s.integers) return "multiplies 8-bit integers, which x is not";
  if (s.weight != Storage::q4 && s.weight != Storage::q8) return "takes quantized weights";
  if (s.group % 8 != 0) return format("takes groups of multiples of 8 columns, not of %u", s.group);
  if (s.group == 0 && s.k > kMaxWholeRow)
    return format("sums rows of up to %lld columns in 32 bits", static_cast<long long>(kMaxWholeRow));
  if (matrix) return why_no_matrix(kernel, s, features);
  if (kernel.family == Family::dot_tiled) return why_no_tile(kernel, s, features);
  const uint32_t bytes = shared_bytes(kernel, s.k, dot_gemv_lanes(kernel, s, features));
  if (bytes > features.max_shared_bytes)
    return format("needs %u bytes of shared memory, the device has %u", bytes, features.max_shared_bytes);
  return "";
}

// GPU: H200, us for 4096 -> 14336, quantization of x included. One row, int4 in groups of 32: dot1 18.6, dot1x2 17.9,
// two dispatches with the GEMV of words 19.8; int8: dot1 22.5, dot1x2 23.0, gemvf8x2 23.8. Groups of 128, dot1 and
// dot1x2: 17.6, 16.3; 4096 -> 28672 27.8, 25.0; 14336 -> 4096 21.9, 17.7 (int8 26.9, 21.5); 4096 -> 4096 9.1 both; 4096
// -> 6144 9.7, 13.4. 4 rows, int8: gemvf8x2 24.2, dotw4 33.5.
//   one scale a row   int8_128x128   int8_128x128d2   int8_64x128
//   int8, 512 rows    137            222 (spills)     201
//   int8, 2048 rows   451            761              593
//   int4, 512 rows    130            127
//   int4, 2048 rows   428            410
// With fewer tiles, int8, gemvf16x2 and int8_64x64: 4096 -> 4096: 32 rows 18.0, 50.4; 64 26.0, 51.6; 128 40.6, 52.9;
// 4096 -> 8192: 64 rows 41, 53; 128 68, 54; 4096 -> 14336: 32 rows 42, 50; 64 62, 55.
// 2 to 16 rows, int8, x f32: dotw4, the best of gemvf* and of gemv*: 2048 -> 512, 4 rows 10.4, 13.0; 16
// rows 10.6, 13.2, 21; 4096 -> 4096: 4 rows 16.3, 14.8; 16 rows 31, 16, 41; 4096 -> 14336: 2 rows 31, 25, 31; 16 rows
// 83, 30, 112. Tiles of 16 rows of int8 matrices, up to eight of them on their way: 54 and more. Groups of 128, 512 and
// 2048 rows: int8g_64x128 235 and 852, int8g_128x128 261 and 905, fragments64x256 198 and 648; of 32, 512 rows: 310 of
// int8g_64x128, 203 of fragments64x256. dot_tile64x128, groups of 128, 512 rows, x f32: 783. CPU: lavapipe, ms for 2048
// x 2048 in groups of 32: one row dotw1 2.8, gemvr1 1.1; eight rows dotw8 7.3, gemvr8 3.4; 128 98 and 46.
const LinearKernel* pick_integers(const LinearShape& s, const Features& features) {
  const auto first = [&](std::initializer_list<const char*> names) -> const LinearKernel* {
    for (const char* each : names) {
      if (why_not(linear_kernel(each), s, features).empty()) return &linear_kernel(each);
    }
    return nullptr;
  };
  if (features.cpu) return nullptr;
  const bool textures = s.textures || s.weight_texture;
  if (s.m == 1) {
    const bool wide = s.weight == Storage::q4 && s.n >= 12288, deep = s.k >= 8192 && s.n > 2048 && s.n <= 4096;
    return first({textures ? "dotw1" : wide || deep ? "dot1x2" : "dot1", textures ? "dotw1" : "dot1"});
  }
  const bool fragments = why_not(linear_kernel("gemvf16x2"), s, features).empty();
  if (s.m <= 16) {
    const bool dots = s.group == 0 && s.weight == Storage::q8 && (!fragments || s.n * s.k <= kSmallWeight);
    return dots ? first({"dotw4"}) : nullptr;
  }
  const Tile& large = linear_kernel("int8_128x128").tile;
  const bool many = s.m > large.bm / 2 && ceil_div(s.m, large.bm) * ceil_div(s.n, large.bn) >= 96;
  const bool passes = s.m <= 128 && (s.group != 0 || s.m * s.n * s.k <= kPassesWork);
  if (!many && passes && fragments) return nullptr;
  const LinearKernel* matrix = nullptr;
  if (many) matrix = first({s.weight == Storage::q4 ? "int8_128x128d2" : "int8_128x128"});
  if (matrix == nullptr) matrix = first({"int8_64x64", "int8_32x32", "int8_16x32"});
  if (matrix != nullptr) return matrix;
  // Of groups the sums are scaled often: matrices of whole numbers in fp16 are faster, where x is fp16.
  if (!textures && features.has(Feature::coopmat) && features.matrix_f16[0].m != 0 && s.dtype == DType::f16)
    return nullptr;
  return first({"int8g_64x128", "int8g_32x32", "int8g_16x32", "dot_tile64x128", "dot_tile64x64", "dot_tile32x64"});
}

// H200, dq8ca_q8csw 513 x 4096 -> 14336: 189 us in tiles alone, 155 so, 136 of 512 rows; 8 rows
// more gain nothing.
const LinearKernel* pick_tail(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  if (kernel.family != Family::matrix_int8 || s.m < kernel.tile.bm) return nullptr;
  const int64_t tail = s.m % kernel.tile.bm;
  if (tail == 0 || tail > 4) return nullptr;
  const LinearKernel& gemv = linear_kernel(tail == 1 ? "dotw1" : "dotw4");
  return why_not(gemv, s, features).empty() ? &gemv : nullptr;
}

}  // namespace pumice
