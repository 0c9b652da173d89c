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

Tensor pack_data(Graph& graph, Tensor weight, Storage storage, uint32_t n, uint32_t k) {
  const uint32_t v = kVectors[static_cast<uint32_t>(storage)];
  const int64_t vectors = int64_t{strips(n)} * tiles(k) * v * kTileLanes;
  const int64_t row_bytes[] = {(int64_t{k} + 1) / 2, k, int64_t{k} * 2, int64_t{k} * 4};
  glsl::linear_pack::Params params{};
  params.n = n;
  params.k = k;
  params.tiles = tiles(k);
  params.row_bytes = u32(row_bytes[static_cast<uint32_t>(storage)]);
  params.last_word = u32((n * row_bytes[static_cast<uint32_t>(storage)] - 1) / 4);
  params.count = u32(vectors);
  return graph.prepack("linear_pack", {weight}, DType::i32, {vectors * 4}, [=](Launch& launch) {
    launch.over(params.count);
    launch.params(params);
    launch.shader = &glsl::linear_pack::variant(static_cast<glsl::linear_pack::WEIGHT>(storage));
  });
}

Tensor pack_pairs(Graph& graph, Tensor x, uint32_t n, uint32_t groups, uint32_t offset) {
  const int64_t pairs = int64_t{strips(n)} * groups * 8;
  const glsl::linear_pack_scale::Params params{n, groups, offset, u32(pairs)};
  const DType dtype = x.dtype();
  return graph.prepack("linear_pack_scale +" + std::to_string(offset), {x}, DType::i32,
                       {dtype == DType::f32 ? pairs * 2 : pairs}, [=](Launch& launch) {
                         launch.over(params.count);
                         launch.params(params);
                         launch.shader = &glsl::linear_pack_scale::variant(glsl::linear_pack_scale::dtype(dtype));
                       });
}

// The part of the two kernels' Params and specialization constants that is one.
template <class Params>
void describe(Launch& launch, const PackedWeight& w, uint32_t m, uint32_t row_blocks, const Epilogue& end) {
  launch.params(Params{m, w.n, w.k, tiles(w.k), w.groups, row_blocks});
  launch.spec.insert(launch.spec.end(),
                     {w.group, w.scale_f16, bool(w.zero), bool(end.bias), w.k % 64 == 0 ? 2u : uint32_t{w.k % 4 == 0},
                      w.n % 4 == 0, static_cast<uint32_t>(end.act), bool(end.residual)});
  launch.flops = 2ull * m * w.n * w.k;
}

void launch_linear(Launch& launch, DType dtype, const PackedWeight& w, uint32_t m, const Epilogue& end) {
  const LinearShape shape{m, w.n, w.k, w.group, w.storage, dtype, bool(w.zero)};
  const LinearKernel& kernel = choose_linear(shape, launch.features);
  if (kernel.family == Family::gemv) {
    using namespace glsl::linear_gemv;
    const uint32_t blocks = (m + kernel.rows - 1) / kernel.rows;
    over_groups(launch, uint64_t{(strips(w.n) + kernel.strips - 1) / kernel.strips} * blocks,
                gemv_lanes(kernel, w.k, launch.features));
    describe<Params>(launch, w, m, blocks, end);
    launch.spec.insert(launch.spec.end(), {kernel.rows, gemv_depth(kernel, launch.features), kernel.strips});
    launch.shader = &variant(glsl::linear_gemv::dtype(dtype), static_cast<WEIGHT>(w.storage));
  } else {
    using namespace glsl::linear_tiled;
    const Tile& t = kernel.tile;
    const uint32_t blocks = (m + t.bm - 1) / t.bm;
    over_groups(launch, uint64_t{(w.n + t.bn - 1) / t.bn} * blocks, t.lanes());
    describe<Params>(launch, w, m, blocks, end);
    launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn});
    launch.shader = &variant(glsl::linear_tiled::dtype(dtype), static_cast<WEIGHT>(w.storage));
  }
}

}  // namespace

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

void linear(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight, const Epilogue& end) {
  activation(end.act, op);
  const DType dtype = x.dtype();
  const Tensor bias = end.bias, residual = end.residual;
  check(out.dtype() == dtype, "%s: x is %s, the output %s", op, name(dtype), name(out.dtype()));
  check(x.rank() >= 1, "%s: x has no dimension", op);
  if (bias) check(bias.dtype() == dtype && bias.rank() == 1, "%s: the bias must be %s of rank 1", op, name(dtype));
  if (residual)
    check(residual.dtype() == dtype, "%s: the residual is %s, x %s", op, name(residual.dtype()), name(dtype));
  std::vector<Tensor> reads = {x, weight.weight, bias ? bias : x, residual ? residual : x};
  if (quantized(weight.storage)) {
    reads.push_back(weight.scale);
    reads.push_back(weight.zero ? weight.zero : weight.scale);
  }
  graph.dispatch({out}, std::move(reads), [=](Launch& launch) {
    Shape shape = x.shape();
    check(shape.back() == weight.k, "%s: x has %" PRId64 " columns, the weight %u", op, shape.back(), weight.k);
    if (bias)
      check(bias.dim(0) == weight.n, "%s: the bias has %" PRId64 " elements, the weight %u rows", op, bias.dim(0),
            weight.n);
    shape.back() = weight.n;
    if (residual) check(residual.shape() == shape, "%s: the residual has another shape than the output", op);
    out.resize(shape);
    const uint32_t m = u32(x.numel() / weight.k);
    u32(out.numel());
    if (m != 0) launch_linear(launch, dtype, weight, m, end);
  });
}

}  // namespace pumice
