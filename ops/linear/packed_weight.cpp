// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/packed_weight.h"

#include <algorithm>
#include <bit>
#include <cinttypes>

#include "glsl/linear_pack.h"
#include "glsl/linear_pack_powers.h"
#include "glsl/linear_pack_scale.h"
#include "glsl/linear_pack_split.h"
#include "ops/shared/shape.h"

// As check, for the groups, scales and zero points of a weight.
#define check_parameters(condition, ...)                        \
  do {                                                          \
    if (!(condition)) {                                         \
      fail(Code::BadQuantParams, Stage::plan, "", __VA_ARGS__); \
    }                                                           \
  } while (false)

namespace pumice::engine {
namespace {

constexpr uint32_t kTileLanes = 32;
constexpr uint32_t kVectors[] = {1, 2, 4, 8};  // uvec4 a lane owns of a tile, by WeightType
constexpr uint32_t kOffset[] = {8, 128};       // stored integers are their value plus this

WeightType weight_type_of(DType dtype, const char* op) {
  switch (dtype) {
    case DType::i4:
      return WeightType::q4;
    case DType::i8:
      return WeightType::q8;
    case DType::f16:
      return WeightType::f16;
    case DType::f32:
      return WeightType::f32;
    default:
      fail(Code::BadDtype, Stage::plan, "", "%s: the weight is %s; it can be i4, i8, f16 or f32", op, name(dtype));
  }
}

// Bytes of a row in the file, and in the packed form of 16 rows.
uint64_t raw_bytes(WeightType type, uint64_t k) {
  const uint64_t bytes[] = {(k + 1) / 2, k, k * 2, k * 4};
  return bytes[static_cast<uint32_t>(type)];
}
uint64_t packed_bytes(WeightType type, uint32_t k) {
  return uint64_t{panel_tiles(k)} * kVectors[static_cast<uint32_t>(type)] * kTileLanes * 16 / kPanelRows;
}

// A weight is packed in ranges, so that at most this many of its raw bytes are on the device at once.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

Tensor pack_data(Graph& graph, Tensor weight, WeightType type, uint32_t n, uint32_t k, bool texture) {
  const uint64_t raw = raw_bytes(type, k), packed = packed_bytes(type, k);
  const int64_t words = int64_t{row_panels(n)} * kPanelRows * static_cast<int64_t>(packed / 4);
  const auto pack = [=](Launch& launch) {
    for (const RowRange& block : split_rows(row_panels(n) * kPanelRows, {raw, packed}, launch.features, kPieceBytes)) {
      const uint32_t rows = std::min(block.count, n - block.first);
      glsl::linear_pack::Params params{};
      params.n = rows;
      params.k = k;
      params.tiles = panel_tiles(k);
      params.row_bytes = u32(static_cast<int64_t>(raw));
      params.last_word = static_cast<uint32_t>((rows * raw - 1) / 4);
      params.first = texture ? static_cast<uint32_t>(block.first * packed / 16) : 0;
      params.count = static_cast<uint32_t>(block.count * packed / 16);
      launch.over(params.count);
      launch.params(params);
      launch.shader = &glsl::linear_pack::variant(static_cast<glsl::linear_pack::WEIGHT>(type),
                                                  static_cast<glsl::linear_pack::WEIGHT_STORAGE>(texture));
      launch.binding_ranges = {{block.first * packed, block.count * packed}, {block.first * raw, rows * raw}};
      launch.next_dispatch();
    }
  };
  return graph.prepack("linear_pack", {weight}, DType::i32, {words}, pack,
                       texture ? StorageType::texture2d : StorageType::buffer);
}

// Bytes of a weight's row in the pairs of its scales or zero points.
uint64_t pair_bytes(uint32_t groups, bool f32) {
  return uint64_t{groups} * (f32 ? 4 : 2);
}

Tensor pack_pairs(Graph& graph, Tensor x, uint32_t n, uint32_t groups, uint32_t offset) {
  const DType dtype = x.dtype();
  const uint64_t raw = uint64_t{groups} * device_bytes(dtype), packed = pair_bytes(groups, dtype == DType::f32);
  const int64_t words = int64_t{row_panels(n)} * kPanelRows * static_cast<int64_t>(packed) / 4;
  return graph.prepack("linear_pack_scale +" + std::to_string(offset), {x}, DType::i32, {words}, [=](Launch& launch) {
    for (const RowRange& block : split_rows(row_panels(n) * kPanelRows, {raw, packed}, launch.features, kPieceBytes)) {
      const uint32_t rows = std::min(block.count, n - block.first), pairs = block.count / kPanelRows * groups * 8;
      launch.over(pairs);
      launch.params(glsl::linear_pack_scale::Params{rows, groups, offset, pairs});
      launch.shader = &glsl::linear_pack_scale::variant(glsl::linear_pack_scale::dtype(dtype));
      launch.binding_ranges = {{block.first * packed, block.count * packed}, {block.first * raw, rows * raw}};
      launch.next_dispatch();
    }
  });
}

}  // namespace

LinearShape product_shape(const PackedWeight& w, DType dtype, int64_t m) {
  return {.m = m,
          .n = w.n,
          .k = w.k,
          .group = w.group,
          .weight = w.type,
          .dtype = dtype,
          .scale_f16 = w.scale_f16,
          .weight_texture = w.texture};
}

PackedWeight pack_weight(Graph& graph, const char* op, Tensor weight, Tensor scale, Tensor zero, int64_t group,
                         bool textures) {
  check(weight.is_constant() && weight.rank() == 2, "%s: the weight must be a constant of rank 2", op);
  const int64_t n = weight.dim(0), k = weight.dim(1);
  check(n >= 1 && k >= 1, "%s: the weight is [%" PRId64 ", %" PRId64 "], it must not be empty", op, n, k);
  PackedWeight packed;
  packed.type = weight_type_of(weight.dtype(), op);
  packed.n = u32(n);
  packed.k = u32(k);
  check(quantized(packed.type) == bool(scale), "%s: a weight of %s %s scales", op, name(weight.dtype()),
        scale ? "has no" : "needs");
  if (quantized(packed.type)) {
    check_parameters(group >= 1 && k % group == 0, "%s: groups of %" PRId64 " columns do not divide %" PRId64, op,
                     group, k);
    check_parameters(group == k || group % 4 == 0,
                     "%s: groups of %" PRId64 " columns; only multiples of 4, or whole rows", op, group);
    const Shape want = {n, k / group};
    check_parameters(scale.is_constant() && scale.shape() == want,
                     "%s: scales must be a constant [%" PRId64 ", %" PRId64 "]", op, want[0], want[1]);
    check(scale.dtype() == DType::f32 || scale.dtype() == DType::f16, "%s: scales are %s, not f32 or f16", op,
          name(scale.dtype()));
    if (const auto bad = graph.bad_scale(scale)) {
      const bool half = scale.dtype() == DType::f16;
      const float value = half ? half_value(static_cast<uint16_t>(bad->bits)) : std::bit_cast<float>(bad->bits);
      fail(Code::BadQuantParams, Stage::plan, "", "%s: scale %zu of the weight is %g", op, bad->index,
           static_cast<double>(value));
    }
    packed.groups = u32(want[1]);
    packed.group = group == k ? 0 : u32(group);
    packed.scale_f16 = scale.dtype() == DType::f16;
    packed.scale = pack_pairs(graph, scale, packed.n, packed.groups, 0);
    if (packed.scale_f16 && packed.group != 0) {
      if (const auto span = graph.half_exponents(scale); span && span->high - span->low < 9)
        packed.scales = {true, -6 - span->high};
    }
    if (zero) {
      check_parameters(zero.is_constant() && zero.dtype() == DType::i8 && zero.shape() == want,
                       "%s: zero points must be a constant i8 [%" PRId64 ", %" PRId64 "]", op, want[0], want[1]);
      // Checked here, once: kernels then leave the term out.
      if (!graph.is_zero(zero))
        packed.zero = pack_pairs(graph, zero, packed.n, packed.groups, kOffset[static_cast<uint32_t>(packed.type)]);
      if (packed.zero) packed.scales = {};
    }
  }
  packed.texture = textures && graph.in_texture(weight);
  packed.weight = pack_data(graph, weight, packed.type, packed.n, packed.k, packed.texture);
  return packed;
}

void check_weight_of(const char* op, Tensor x, const PackedWeight& weight) {
  const DType dtype = weight.type == WeightType::f16 ? DType::f16 : DType::f32;
  check(quantized(weight.type) || x.dtype() == dtype, "%s: x is %s, the weight %s", op, name(x.dtype()), name(dtype));
}

PackedWeight pack_q8csw(Graph& graph, const Args& args, const char* op) {
  const Tensor weight = args.tensor(1);
  check(weight.dtype() == DType::i8, "%s: the weight is %s, not i8", op, name(weight.dtype()));
  return pack_weight(graph, op, weight, args.tensor(2), args.tensor(3), weight.dim(-1), true);
}

PackedWeight split_form(Graph& graph, PackedWeight w) {
  if (w.type != WeightType::f32) return w;
  const int64_t rows = int64_t{row_panels(w.n)} * kPanelRows;
  const uint32_t tiles = panel_tiles(w.k);
  const uint64_t row = packed_bytes(w.type, w.k);
  w.scale = graph.prepack("linear_pack_powers", {w.weight}, DType::i32, {rows}, [=](Launch& launch) {
    for (const RowRange& block : split_rows(u32(rows), {row}, launch.features)) {
      launch.over(block.count / 2);
      launch.params(glsl::linear_pack_powers::Params{tiles, block.count / 2});
      launch.shader = &glsl::linear_pack_powers::variant();
      launch.binding_ranges = {{block.first * uint64_t{4}, block.count * uint64_t{4}},
                               {block.first * row, block.count * row}};
      launch.next_dispatch();
    }
  });
  return w;
}

PackedWeight pre_split_form(Graph& graph, const PackedWeight& weight) {
  PackedWeight w = split_form(graph, weight);
  const uint32_t rows = row_panels(w.n) * kPanelRows, tiles = panel_tiles(w.k);
  const uint64_t row = packed_bytes(w.type, w.k);
  const Shape words = {static_cast<int64_t>(rows * row / 4)};
  w.weight = graph.prepack("linear_pack_split", {w.weight, w.scale}, DType::i32, words, [=](Launch& launch) {
    for (const RowRange& block : split_rows(rows, {row}, launch.features)) {
      const uint32_t count = block.count / kPanelRows * tiles * 128;
      launch.over(count);
      launch.params(glsl::linear_pack_split::Params{tiles, count});
      launch.shader = &glsl::linear_pack_split::variant();
      const BindingRange weights = {block.first * row, block.count * row};
      launch.binding_ranges = {weights, weights, {block.first * uint64_t{4}, block.count * uint64_t{4}}};
      launch.next_dispatch();
    }
  });
  return w;
}

uint64_t row_bytes(const PackedWeight& w) {
  return packed_bytes(w.type, w.k) + (w.scale ? pair_bytes(w.groups, !w.scale_f16) : 0) +
         (w.zero ? pair_bytes(w.groups, false) : 0);
}

std::vector<RowRange> weight_row_ranges(const PackedWeight& w, const Features& features) {
  const uint64_t weight = w.texture ? 0 : packed_bytes(w.type, w.k),
                 scale = w.scale ? pair_bytes(w.groups, !w.scale_f16) : 0,
                 zero = w.zero ? pair_bytes(w.groups, false) : 0;
  auto blocks = split_rows(row_panels(w.n) * kPanelRows, {weight, scale, zero}, features);
  blocks.back().count = w.n - blocks.back().first;
  return blocks;
}

std::array<BindingRange, 3> weight_binding_ranges(const PackedWeight& w, const RowRange& block) {
  const BindingRange scale = binding_range(block, w.n, pair_bytes(w.groups, !w.scale_f16));
  return {binding_range(block, w.n, packed_bytes(w.type, w.k)), scale,
          w.zero ? binding_range(block, w.n, pair_bytes(w.groups, false)) : scale};
}

}  // namespace pumice::engine
