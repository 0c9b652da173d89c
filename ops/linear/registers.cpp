// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/registers.h"

namespace pumice::engine {

// Adreno 630 and 660 have fewer than their successors, by what compilers spill. Their drivers say what those of the
// others say, but for 8-bit storage. Another GPU where that is switched off is taken for one, too, and gets smaller
// tiles.
static bool has_least(const Features& features) {
  const bool adreno = features.subgroup_size > 32 && !features.has(Feature::storage8);
  return features.few_registers && (adreno || features.max_subgroup_size == 16);
}

// Adreno 660, which has 16-bit storage: a lane of a workgroup of 256 may use 32 registers of four numbers, and 48 on
// Adreno 630. Mali, whose subgroups are of 16 and nothing else: 64 registers of one number, whatever the workgroup.
bool has_fewest_registers(const Features& features) {
  return has_least(features) && features.has(Feature::storage16);
}

// Few on Adreno, and fewer on Adreno 630 and 660 and in small subgroups, on Apple's and Intel's GPUs. Spills and fills
// of linear_tiled.glsl on Mali, of 32 sums: fp16 33 and 30, int4 in fp32 67 and 230.
uint32_t most_sums(const Features& features) {
  if (!features.few_registers) return 128;
  if (features.max_subgroup_size == 16) return 16;
  return features.subgroup_size > 32 && !has_least(features) ? 64 : 32;
}

// Spills and fills on Mali, of 4 x 4 outputs and of 2 x 4: linear_tiled.glsl, int4 in fp32 3 and 0; matmul.glsl in fp32
// 20 to 35 and 0; linear_dot_tiled.glsl, int4, 77 and 0; conv2d_dot.glsl 4 to 116 and 0.
bool takes_least_tiles(const Features& features) {
  return 2 * 4 * 4 > most_sums(features);
}

bool holds_sums(const Tile& tile, const Features& features, uint32_t sums) {
  return !features.few_registers || sums * tile.tm * tile.tn <= most_sums(features) * features.subgroup_size;
}

// Mesa's compiler for Intel, Arc A, spills and fills of a pipeline that ResNet-50, MiniLM or a Llama makes, by a
// subgroup's tile: 16 x 16 13 to 456, 8 x 16 0 to 89, 8 x 8 none, for int4, fp16, 8-bit integers and convolutions.
// Battlemage, whose subgroups are 16, 16 x 16: 5 with scaled sums besides those of whole numbers (8 x 16 none), none
// without.
bool holds_matrices(const Tile& tile, const Features& features, uint32_t sums) {
  constexpr uint32_t kSmallest = 8;  // sums of one matrix
  if (features.few_registers && features.subgroup_size == 16 && sums > 1)
    return tile.tm * tile.tn <= kSmallest * features.subgroup_size;
  if (features.few_registers && features.subgroup_size < 16)
    return tile.tm * tile.tn <= kSmallest * features.subgroup_size;
  return holds_sums(tile, features, sums);
}

// Spills of linear_gemv.glsl on Adreno 630, int4 in fp32 and in fp16: 8 rows 683 and 116, 4 rows 105 and 0, of two
// panels 161 and 17, 2 rows none. Adreno 660: 4 rows 38 and 42, 2 rows none. Adreno 730 to 830: none in all but 4 rows
// of two panels. Mali, int4 in fp32 and in fp16: 4 rows 190 and 72, 8 rows 338 in fp16.
bool holds_pass(uint32_t rows, DType dtype, const Features& features) {
  return !has_least(features) || rows <= (dtype == DType::f16 && !has_fewest_registers(features) ? 4 : 2);
}

// Mesa's compiler for Skylake, the one GPU of small subgroups without packed dot products: 4 rows of fp32 by int8 in
// groups of 32 13 spills and fills, by int4 and in fp16 none.
bool holds_two_panels(uint32_t rows, const LinearShape& s, const Features& features) {
  if (!holds_pass(rows * 2, s.dtype, features)) return false;
  const bool skylake = features.few_registers && features.subgroup_size < 32 && !features.has(Feature::int_dot);
  return !skylake || rows < 4 || s.dtype != DType::f32 || s.weight != WeightType::q8;
}

// Mesa's compiler for Battlemage, whose subgroups are 16, 8 rows of fp16 in groups of 32, spills and fills: int4 8,
// int8 12, one tile ahead none. Arc A and Tiger Lake, 8: none. Mali, 2 rows, int4 in fp32 74, one row of fp32 with
// whole tiles ahead 244 to 259; one tile ahead, and one row otherwise, none.
bool holds_two_ahead(uint32_t rows, bool whole, const Features& features) {
  if (takes_least_tiles(features) && (rows > 1 || whole)) return false;
  return !features.few_registers || features.subgroup_size != 16 || rows < 8;
}

// Spills of linear_gemv.glsl on Adreno 730 to 830, one row of fp32 among 512 lanes: 68, among 256 and of fp16 none.
// Adreno 630 and 660 have no more than 256, among which none spill.
bool holds_whole_tiles(uint32_t lanes, WeightType weight, const Features& features) {
  return !features.few_registers || features.subgroup_size <= 32 || weight == WeightType::f16 || lanes <= 256;
}

// By what compilers spill (docs/fleet.md). Mali, heads of 8 and 16 elements: 47 to 274, and up to 2 s to compile.
bool holds_key_and_value(int64_t bytes, int64_t rows, const Features& features) {
  if (!features.few_registers || features.subgroup_size > 32) return true;
  if (features.subgroup_size == 32) return bytes <= 256;
  return bytes * (rows + 1) <= 320 && !takes_least_tiles(features);
}

// Among 1024 lanes, compilers for Adreno and Apple spill; for Adreno 630 and 660 also among 512: 114 and 56 of one row
// in fp32.
uint32_t most_pass_lanes(const Features& features) {
  if (features.cpu || (features.subgroup_size <= 32 && !features.few_registers)) return features.max_invocations;
  return has_least(features) ? 256 : 512;
}

// Mesa's compiler for Intel, processor time of a pipeline by how many times the sums are more than what is held: 2
// times 0.1 to 0.4 s, 4 times 0.6 to 3.5 s, 8 times 0.8 to 1.0 s, 16 times 4 to 8 s. For Mali, linear_tiled.glsl: 2
// times 0.1 s, 4 times up to 1.3 s. No table picks such a kernel.
std::string sums_unsupported_reason(const Tile& tile, const Features& features, uint32_t sums) {
  constexpr uint32_t kTooMany = 4;
  const uint32_t held = most_sums(features), each = sums * tile.tm * tile.tn / features.subgroup_size;
  if (!features.few_registers || each < kTooMany * held) return "";
  return format("keeps %u sums an invocation, where this GPU has registers for about %u", each, held);
}

}  // namespace pumice::engine
