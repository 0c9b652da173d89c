// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/int8_kernels.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/divide.h"
#include "ops/linear/registers.h"

namespace pumice::engine {
namespace {

// Sums of so many products of signed bytes and differences of bytes stay within 32 bits.
constexpr int64_t kMaxWholeRow = 32768;

uint32_t tiles(int64_t k) {
  return static_cast<uint32_t>(ceil_div(k, 64));
}

// The rows of x, and the partial sums (linear_dot_gemv.glsl).
uint32_t shared_bytes(const LinearKernel& kernel, int64_t k, uint32_t lanes) {
  return kernel.rows * (tiles(k) * 64 + kernel.panels * 16 * (lanes / 32 / kernel.panels + 1) * 16 + 12);
}

}  // namespace

// Subgroups of each of more than two row panels. H200, one row, int4 in groups of 32, 4096 -> 14336, us with four row
// panels: 4 subgroups of each 11.8, 8 14.3; with seven 4 11.7, 2 12.9.
constexpr uint32_t kWideSlots = 4;

// So many that a lane has about four tiles of its row panel, and that all workgroups run at once (H200: 132 times 2048
// invocations), but not fewer than 128.
uint32_t dot_gemv_lanes(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const int64_t most = features.filling(300000);
  const uint32_t panels = kernel.panels;
  const int64_t groups = ceil_div(s.n, 16 * panels) * ceil_div(s.m, kernel.rows);
  uint32_t slots = std::max(std::bit_floor(std::max(tiles(s.k) / 4, 1u)), std::min(std::bit_ceil(tiles(s.k)), 4u));
  const auto too_large = [&](uint32_t n) {
    const uint32_t lanes = n * panels * 32;
    return lanes > 1024 || lanes > features.max_invocations ||
           shared_bytes(kernel, s.k, lanes) > features.max_shared_bytes || (n > 8 && groups * lanes > most);
  };
  if (panels > 2) slots = std::min(slots, kWideSlots);
  while (slots > 1 && too_large(slots)) slots /= 2;
  return slots * panels * 32;
}

// H200, 4096 -> 14336: 2 22.2 us, 4 18.1, 8 18.3. Mali, spills and fills of one row that a workgroup quantizes, by
// Mesa's compiler: int4 in groups of 32 with 4 tiles 84 to 94, with 2 up to 5, int8 17, with one none.
uint32_t dot_gemv_depth(const Features& features) {
  return takes_least_tiles(features) ? 1 : 4;
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

std::string tile_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  // Rows of 64 bytes and 16 of sums, a scale and a zero point for each half of them; those of the output's rows.
  const Tile& t = kernel.tile;
  const uint32_t bytes = (t.bm + t.bn) * 80 + t.bn * 16 + t.bm * 8, lanes = t.subtiles();
  if (s.group % 32 != 0) return format("takes groups of multiples of 32 columns, not of %u", s.group);
  if (lanes > features.max_invocations || bytes > features.max_shared_bytes)
    return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", lanes, bytes,
                  features.max_invocations, features.max_shared_bytes);
  return sums_unsupported_reason(kernel.tile, features, (s.group != 0 ? 2 : 1) * features.subgroup_size);
}

std::string matrix_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const MatrixShape& shape = features.matrix_s8[0];
  const Tile& t = kernel.tile;
  if (shape.m == 0) return "needs cooperative matrices of signed bytes, which this device lacks";
  const bool groups = kernel.family == Family::matrix_int8_groups;
  if (!groups && s.group != 0) return "takes weights with one scale a row";
  if (groups && (s.group == 0 || s.group % 32 != 0)) return "takes groups of multiples of 32 columns";
  const uint32_t lanes = matrix_int8_lanes(kernel, features), vec4s = t.tn / 4;
  if (t.tm % shape.m != 0 || t.tn % shape.n != 0 || shape.n % 4 != 0 || shape.k < 8 ||
      (groups ? 32 : 64) % shape.k != 0)
    return format("does not divide into matrices of %ux%ux%u", shape.m, shape.n, shape.k);
  if (lanes > features.max_invocations || t.bm * 4 % lanes != 0 || t.bn * 2 % lanes != 0 ||
      (features.subgroup_size % vec4s != 0 && vec4s % features.subgroup_size != 0))
    return format("does not divide among subgroups of %u", features.subgroup_size);
  // Of groups also a scale and a zero point for each half of a tile's rows, and the zero points of rows of x.
  const uint32_t bytes = matrix_int8_shared(kernel, features) + (groups ? t.bn * 16 + t.bm * 4 : 0);
  if (bytes > features.max_shared_bytes)
    return format("needs %u bytes of shared memory, the device has %u", bytes, features.max_shared_bytes);
  // lavapipe writes every product of a tile out: more of them take half a minute and more to compile.
  if (features.cpu && t.tm / shape.m * (t.tn / shape.n) > 2)
    return "has more matrices a subgroup than a CPU driver compiles in a reasonable time";
  return sums_unsupported_reason(t, features, groups ? 2 : 1);
}

}  // namespace

std::string int8_unsupported_reason(const LinearKernel& kernel, const LinearShape& s, const Features& features) {
  const bool matrix = kernel.family == Family::matrix_int8 || kernel.family == Family::matrix_int8_groups;
  std::vector<Feature> needed =
      matrix ? std::vector{Feature::coopmat, Feature::memory_model, Feature::int8} : std::vector{Feature::int_dot};
  if (!matrix && kernel.input == Input::x) needed.push_back(Feature::subgroup_arithmetic);
  for (const Feature feature : needed) {
    if (!features.has(feature))
      return format("needs the feature '%s', which the device lacks or which was switched off", name(feature));
  }
  if (kernel.input == Input::x && (s.textures || s.weight_texture)) return "reads x and the weight from buffers";
  if (matrix && s.weight_texture) return "reads the weight from a buffer";
  if (!s.integers) return "multiplies 8-bit integers, which x is not";
  if (s.weight != WeightType::q4 && s.weight != WeightType::q8) return "takes quantized weights";
  if (s.group % 8 != 0) return format("takes groups of multiples of 8 columns, not of %u", s.group);
  if (s.group == 0 && s.k > kMaxWholeRow)
    return format("sums rows of up to %lld columns in 32 bits", static_cast<long long>(kMaxWholeRow));
  if (matrix) return matrix_unsupported_reason(kernel, s, features);
  if (kernel.family == Family::dot_tiled) return tile_unsupported_reason(kernel, s, features);
  const uint32_t bytes = shared_bytes(kernel, s.k, dot_gemv_lanes(kernel, s, features));
  if (bytes > features.max_shared_bytes)
    return format("needs %u bytes of shared memory, the device has %u", bytes, features.max_shared_bytes);
  return "";
}

}  // namespace pumice::engine
