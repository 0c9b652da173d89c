// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gemm.h"

#include <algorithm>
#include <cinttypes>

#include "glsl/include/activation.glslh"
#include "glsl/linear_gemv.h"
#include "glsl/linear_pack.h"
#include "glsl/linear_pack_scale.h"
#include "glsl/linear_tiled.h"
#include "ops/common/shape.h"

namespace pumice {
namespace {

constexpr uint32_t kStripRows = 16, kTileColumns = 64, kTileLanes = 32;
constexpr uint32_t kVectors[] = {1, 2, 4, 8};  // uvec4 a lane owns of a tile, by Storage
constexpr uint32_t kOffset[] = {8, 128};       // what stored integers have more than their value

uint32_t strips(uint32_t n) {
  return (n + kStripRows - 1) / kStripRows;
}
uint32_t tiles(uint32_t k) {
  return (k + kTileColumns - 1) / kTileColumns;
}

Storage storage_of(DType dtype, const char* op) {
  switch (dtype) {
    case DType::i4:
      return Storage::q4;
    case DType::i8:
      return Storage::q8;
    case DType::f16:
      return Storage::f16;
    case DType::f32:
      return Storage::f32;
    default:
      fail(Code::BadDtype, Stage::plan, "", "%s: the weight is %s; it can be i4, i8, f16 or f32", op, name(dtype));
  }
}

bool quantized(Storage storage) {
  return storage == Storage::q4 || storage == Storage::q8;
}

// Bytes of a row in the file, and in the packed form of 16 rows.
uint64_t raw_bytes(Storage storage, uint64_t k) {
  const uint64_t bytes[] = {(k + 1) / 2, k, k * 2, k * 4};
  return bytes[static_cast<uint32_t>(storage)];
}
uint64_t packed_bytes(Storage storage, uint32_t k) {
  return uint64_t{tiles(k)} * kVectors[static_cast<uint32_t>(storage)] * kTileLanes * 16 / kStripRows;
}

// A pack in parts keeps the raw bytes that are on the device at once within this.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;

Tensor pack_data(Graph& graph, Tensor weight, Storage storage, uint32_t n, uint32_t k) {
  const uint64_t raw = raw_bytes(storage, k), packed = packed_bytes(storage, k);
  const int64_t words = int64_t{strips(n)} * kStripRows * static_cast<int64_t>(packed / 4);
  return graph.prepack("linear_pack", {weight}, DType::i32, {words}, [=](Launch& launch) {
    for (const RowBlock& block : split_rows(strips(n) * kStripRows, {raw, packed}, launch.features, kPieceBytes)) {
      const uint32_t rows = std::min(block.count, n - block.first);
      glsl::linear_pack::Params params{};
      params.n = rows;
      params.k = k;
      params.tiles = tiles(k);
      params.row_bytes = u32(static_cast<int64_t>(raw));
      params.last_word = static_cast<uint32_t>((rows * raw - 1) / 4);
      params.count = static_cast<uint32_t>(block.count * packed / 16);
      launch.over(params.count);
      launch.params(params);
      launch.shader = &glsl::linear_pack::variant(static_cast<glsl::linear_pack::WEIGHT>(storage));
      launch.windows = {{block.first * packed, block.count * packed}, {block.first * raw, rows * raw}};
      launch.next_part();
    }
  });
}

// Bytes of a weight's row in the pairs of its scales or zero points.
uint64_t pair_bytes(uint32_t groups, bool f32) {
  return uint64_t{groups} * (f32 ? 4 : 2);
}

Tensor pack_pairs(Graph& graph, Tensor x, uint32_t n, uint32_t groups, uint32_t offset) {
  const DType dtype = x.dtype();
  const uint64_t raw = uint64_t{groups} * device_bytes(dtype), packed = pair_bytes(groups, dtype == DType::f32);
  const int64_t words = int64_t{strips(n)} * kStripRows * static_cast<int64_t>(packed) / 4;
  return graph.prepack("linear_pack_scale +" + std::to_string(offset), {x}, DType::i32, {words}, [=](Launch& launch) {
    for (const RowBlock& block : split_rows(strips(n) * kStripRows, {raw, packed}, launch.features, kPieceBytes)) {
      const uint32_t rows = std::min(block.count, n - block.first), pairs = block.count / kStripRows * groups * 8;
      launch.over(pairs);
      launch.params(glsl::linear_pack_scale::Params{rows, groups, offset, pairs});
      launch.shader = &glsl::linear_pack_scale::variant(glsl::linear_pack_scale::dtype(dtype));
      launch.windows = {{block.first * packed, block.count * packed}, {block.first * raw, rows * raw}};
      launch.next_part();
    }
  });
}

constexpr uint64_t kRowBytes = 8;  // the scale and zero point of a quantized row

// Columns of x as kernels see it.
uint32_t x_columns(const PackedWeight& w, const Epilogue& end) {
  return end.rows ? tiles(w.k) * kTileColumns : w.k;
}

struct LinearBlock {
  uint32_t m, n;  // rows of x and of the weight
};

// The part of the two kernels' Params and specialization constants that is one.
template <class Params>
void describe(Launch& launch, const PackedWeight& w, const LinearBlock& block, uint32_t row_blocks,
              const Epilogue& end) {
  const uint32_t k = x_columns(w, end);
  launch.params(Params{block.m, block.n, k, tiles(w.k), w.groups, row_blocks, w.n});
  launch.spec.insert(launch.spec.end(),
                     {w.group, w.scale_f16, bool(w.zero), bool(end.bias), k % 64 == 0 ? 2u : uint32_t{k % 4 == 0},
                      w.n % 4 == 0, static_cast<uint32_t>(end.act), bool(end.residual), bool(end.rows)});
  launch.flops = 2ull * block.m * block.n * w.k;
}

void launch_block(Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& w,
                  const LinearBlock& block, const Epilogue& end) {
  const auto [m, n] = block;
  if (kernel.family == Family::gemv) {
    using namespace glsl::linear_gemv;
    const uint32_t blocks = (m + kernel.rows - 1) / kernel.rows;
    over_groups(launch, uint64_t{(strips(n) + kernel.strips - 1) / kernel.strips} * blocks,
                gemv_lanes(kernel, w.k, launch.features));
    describe<Params>(launch, w, block, blocks, end);
    launch.spec.insert(launch.spec.end(), {kernel.rows, gemv_depth(kernel, launch.features), kernel.strips});
    launch.shader = &variant(glsl::linear_gemv::dtype(dtype), static_cast<WEIGHT>(w.storage));
  } else {
    using namespace glsl::linear_tiled;
    const Tile& t = kernel.tile;
    const uint32_t blocks = (m + t.bm - 1) / t.bm;
    over_groups(launch, uint64_t{(n + t.bn - 1) / t.bn} * blocks, t.lanes());
    describe<Params>(launch, w, block, blocks, end);
    launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn});
    launch.shader = &variant(glsl::linear_tiled::dtype(dtype), static_cast<WEIGHT>(w.storage));
  }
}

}  // namespace

void launch_linear(Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m,
                   const Epilogue& end) {
  const uint64_t element = device_bytes(dtype), x_row = x_columns(w, end) * element, out_row = w.n * element;
  const auto row_blocks = split_rows(m, {x_row, out_row}, launch.features);
  const auto blocks = weight_blocks(w, launch.features);
  for (const RowBlock& rows : row_blocks) {
    for (const RowBlock& block : blocks) {
      launch_block(launch, kernel, dtype, w, {rows.count, block.count}, end);
      if (row_blocks.size() * blocks.size() == 1) return;
      const uint64_t first = block.first * element;
      const Window x = window(rows, m, x_row);
      Window out = window(rows, m, out_row);  // from the block's first column on
      out = {out.begin + first, out.bytes == 0 ? 0 : out.bytes - first};
      const auto [weight, scale, zero] = weight_windows(w, block);
      launch.windows = {out, x, weight, end.bias ? Window{first, 0} : x, end.residual ? out : x};
      const Window parameters = end.rows ? window(rows, m, kRowBytes) : scale;
      if (w.scale) launch.windows.insert(launch.windows.end(), {scale, zero, parameters});
      launch.next_part();
    }
  }
}

uint32_t activation(int64_t act, const char* op) {
  check(act >= 0 && act <= ACT_SILU, "%s: activation %" PRId64 " is not in 0..%u", op, act, ACT_SILU);
  return static_cast<uint32_t>(act);
}

void over_groups(Launch& launch, uint64_t groups, uint32_t lanes) {
  const uint32_t most = launch.features.max_groups[0];
  const uint64_t rows = (groups + most - 1) / most;
  if (rows > launch.features.max_groups[1])
    fail(Code::LimitExceeded, Stage::plan, "", "%" PRIu64 " workgroups are more than one dispatch takes", groups);
  launch.groups = {static_cast<uint32_t>(rows == 0 ? 0 : (groups + rows - 1) / rows), static_cast<uint32_t>(rows), 1};
  launch.spec.assign(1, lanes);
}

PackedWeight pack_weight(Graph& graph, const char* op, Tensor weight, Tensor scale, Tensor zero, int64_t group) {
  check(weight.is_constant() && weight.rank() == 2, "%s: the weight must be a constant of rank 2", op);
  const int64_t n = weight.dim(0), k = weight.dim(1);
  check(n >= 1 && k >= 1, "%s: the weight is [%" PRId64 ", %" PRId64 "], it must not be empty", op, n, k);
  PackedWeight packed;
  packed.storage = storage_of(weight.dtype(), op);
  packed.n = u32(n);
  packed.k = u32(k);
  check(quantized(packed.storage) == bool(scale), "%s: a weight of %s %s scales", op, name(weight.dtype()),
        scale ? "has no" : "needs");
  if (quantized(packed.storage)) {
    check(group >= 1 && k % group == 0, "%s: groups of %" PRId64 " columns do not divide %" PRId64, op, group, k);
    check(group == k || group % 4 == 0, "%s: groups of %" PRId64 " columns; only multiples of 4, or whole rows", op,
          group);
    const Shape want = {n, k / group};
    check(scale.is_constant() && scale.shape() == want, "%s: scales must be a constant [%" PRId64 ", %" PRId64 "]", op,
          want[0], want[1]);
    check(scale.dtype() == DType::f32 || scale.dtype() == DType::f16, "%s: scales are %s, not f32 or f16", op,
          name(scale.dtype()));
    packed.groups = u32(want[1]);
    packed.group = group == k ? 0 : u32(group);
    packed.scale_f16 = scale.dtype() == DType::f16;
    packed.scale = pack_pairs(graph, scale, packed.n, packed.groups, 0);
    if (zero) {
      check(zero.is_constant() && zero.dtype() == DType::i8 && zero.shape() == want,
            "%s: zero points must be a constant i8 [%" PRId64 ", %" PRId64 "]", op, want[0], want[1]);
      // Proved here, once: kernels then leave the term out.
      if (!graph.is_zero(zero))
        packed.zero = pack_pairs(graph, zero, packed.n, packed.groups, kOffset[static_cast<uint32_t>(packed.storage)]);
    }
  }
  packed.weight = pack_data(graph, weight, packed.storage, packed.n, packed.k);
  return packed;
}

std::vector<RowBlock> weight_blocks(const PackedWeight& w, const Features& features) {
  const uint64_t weight = packed_bytes(w.storage, w.k), scale = w.scale ? pair_bytes(w.groups, !w.scale_f16) : 0,
                 zero = w.zero ? pair_bytes(w.groups, false) : 0;
  auto blocks = split_rows(strips(w.n) * kStripRows, {weight, scale, zero}, features);
  blocks.back().count = w.n - blocks.back().first;
  return blocks;
}

std::array<Window, 3> weight_windows(const PackedWeight& w, const RowBlock& block) {
  const Window scale = window(block, w.n, pair_bytes(w.groups, !w.scale_f16));
  return {window(block, w.n, packed_bytes(w.storage, w.k)), scale,
          w.zero ? window(block, w.n, pair_bytes(w.groups, false)) : scale};
}

void check_epilogue(const char* op, DType dtype, const Epilogue& end) {
  activation(end.act, op);
  if (end.bias)
    check(end.bias.dtype() == dtype && end.bias.rank() == 1, "%s: the bias must be %s of rank 1", op, name(dtype));
  if (end.residual)
    check(end.residual.dtype() == dtype, "%s: the residual is %s, not %s", op, name(end.residual.dtype()), name(dtype));
}

Shape linear_shape(const char* op, const Shape& x, const PackedWeight& weight, const Epilogue& end) {
  Shape shape = x;
  check(shape.back() == weight.k, "%s: x has %" PRId64 " columns, the weight %u", op, shape.back(), weight.k);
  if (end.bias)
    check(end.bias.dim(0) == weight.n, "%s: the bias has %" PRId64 " elements, the weight %u rows", op, end.bias.dim(0),
          weight.n);
  shape.back() = weight.n;
  if (end.residual) check(end.residual.shape() == shape, "%s: the residual has another shape than the output", op);
  u32(product(shape, 0, shape.size()));
  return shape;
}

std::vector<Tensor> linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& end) {
  std::vector<Tensor> reads = {x, weight.weight, end.bias ? end.bias : x, end.residual ? end.residual : x};
  if (quantized(weight.storage)) {
    reads.push_back(weight.scale);
    reads.push_back(weight.zero ? weight.zero : weight.scale);
    reads.push_back(end.rows ? end.rows : weight.scale);
  }
  return reads;
}

void linear(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight, const Epilogue& end) {
  const DType dtype = x.dtype();
  check(out.dtype() == dtype, "%s: x is %s, the output %s", op, name(dtype), name(out.dtype()));
  check(x.rank() >= 1, "%s: x has no dimension", op);
  check_epilogue(op, dtype, end);
  graph.dispatch({out}, linear_reads(x, weight, end), [=](Launch& launch) {
    out.resize(linear_shape(op, x.shape(), weight, end));
    const uint32_t m = u32(x.numel() / weight.k);
    if (m == 0) return;
    const LinearShape shape{m, weight.n, weight.k, weight.group, weight.storage, dtype, bool(weight.zero)};
    launch_linear(launch, choose_linear(shape, launch.features), dtype, weight, m, end);
  });
}

}  // namespace pumice
