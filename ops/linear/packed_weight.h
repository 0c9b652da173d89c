// SPDX-License-Identifier: Apache-2.0
// Weights of matrix products, repacked at load for all kernels that read them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "ops/linear/kernels.h"
#include "ops/shared/args.h"
#include "ops/shared/split.h"

namespace pumice::engine {

// The layout of glsl/include/linear/packed.glslh: a weight [n, k] in row panels of 16 rows, a row panel in tiles of 64
// columns.
inline constexpr uint32_t kPanelRows = 16, kTileColumns = 64;
constexpr uint32_t row_panels(uint32_t n) {
  return (n + kPanelRows - 1) / kPanelRows;
}
constexpr uint32_t panel_tiles(uint32_t k) {
  return (k + kTileColumns - 1) / kTileColumns;
}
constexpr bool quantized(WeightType type) {
  return type == WeightType::q4 || type == WeightType::q8;
}

// A weight [n, k] in that layout, made at load.
struct PackedWeight {
  Tensor weight, scale, zero;  // scale and zero: quantized ones only; zero: empty when all zero points are 0
  WeightType type = WeightType::f32;
  uint32_t n = 0, k = 0;
  uint32_t groups = 1, group = 0;  // of a row, and the columns of one; group 0: the whole row
  bool scale_f16 = false;
  bool texture = false;  // the weight is a texture2d
  // Without zero points: whether all fp16 scales, multiplied by 2^shift, are in [2^-14, 2^-5). linear/matrix.glslh then
  // has a shorter way to unpack, on devices that do not flush subnormal numbers (Feature::fragments).
  struct {
    bool tame = false;
    int32_t shift = 0;
  } scales = {};
};

// Of the product of m >= 1 rows in `dtype` with it, on buffers.
LinearShape product_shape(const PackedWeight& weight, DType dtype, int64_t m);

// `weight`: f32, f16, i8 or i4 constant [N, K]; quantized ones have `scale` [N, G] (f32, f16), maybe `zero` [N, G]
// (i8), and groups of `group` columns: G * group == K, and one group or a multiple of 4 columns. `textures`: the
// operator takes the weight in a texture, too, where the file has it so.
PackedWeight pack_weight(Graph& graph, const char* op, Tensor weight, Tensor scale = {}, Tensor zero = {},
                         int64_t group = 0, bool textures = false);

// Throws unless a weight that is not quantized has x's dtype: no kernel mixes them.
void check_weight_of(const char* op, Tensor x, const PackedWeight& weight);

// Of an operator with int8 weights and one scale for each output channel, whose arguments 1, 2 and 3 are weight, scale
// and zero. Throws BadGraph for a weight of another dtype.
PackedWeight pack_q8csw(Graph& graph, const Args& args, const char* op);

// For kernels that split an fp32 weight as they read it (Family::matrix with Input::split): the same weight with a
// scale for each row, a power of two (glsl/linear_pack_powers.glsl).
PackedWeight split_form(Graph& graph, PackedWeight weight);

// A copy of an fp32 weight for kernels that reads_split_weight() tells of: as two fp16 for each element, with those
// scales (glsl/linear_pack_split.glsl). As large as the weight.
PackedWeight pre_split_form(Graph& graph, const PackedWeight& weight);

// Its rows in blocks that bindings of the device hold, mostly one; and where a block is in weight, scale and zero
// (there the scale's again when it is empty).
std::vector<RowRange> weight_row_ranges(const PackedWeight& weight, const Features& features);
uint64_t row_bytes(const PackedWeight& weight);  // of a row of the packed weight, with its scales and zero points
std::array<BindingRange, 3> weight_binding_ranges(const PackedWeight& weight, const RowRange& block);

}  // namespace pumice::engine
