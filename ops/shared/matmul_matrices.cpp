// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/matmul_matrices.h"

#include <algorithm>

#include "base/divide.h"
#include "glsl/matmul_matrix.h"
#include "glsl/matmul_rows.h"
#include "ops/linear/pick.h"
#include "ops/linear/registers.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kGroup = 8;                        // fp16 in a uvec4
constexpr uint32_t kRowLanes = 256, kRowsAtOnce = 8;  // glsl/matmul_rows.glsl

uint32_t parts_of(DType dtype) {
  return dtype == DType::f32 ? 2 : 1;
}

int64_t groups_of(int64_t k) {
  return ceil_div(k, kGroup);
}

LinearShape shape_of(const MatrixProduct& p) {
  const WeightType weight = p.dtype == DType::f32 ? WeightType::f32 : WeightType::f16;
  return {.m = p.a.rows, .n = p.b.rows, .k = p.k, .weight = weight, .dtype = p.dtype, .may_split = true};
}

// Batches of its own: a dimension that all batches share is there once.
int64_t own_batches(const MatrixOperand& operand, const MatrixProduct& p) {
  int64_t count = 1;
  for (size_t d = 0; d < p.size.size(); ++d) count *= operand.batch_stride[d] == 0 ? 1 : p.size[d];
  return count;
}

// As glsl/matmul_rows.glsl leaves it.
MatrixOperand in_rows(const MatrixOperand& operand, const MatrixProduct& p) {
  const int64_t row = groups_of(p.k) * kGroup * parts_of(p.dtype);
  MatrixOperand rows{.rows = operand.rows, .row_stride = row, .k_stride = 1};
  int64_t stride = operand.rows * row;
  for (size_t d = p.size.size(); d-- > 0;) {
    if (operand.batch_stride[d] == 0) continue;
    rows.batch_stride[d] = stride;
    stride *= p.size[d];
  }
  return rows;
}

void launch_rows(Launch& launch, const MatrixOperand& operand, const MatrixProduct& p) {
  using namespace glsl::matmul_rows;
  Params params{};
  params.rows = u32(operand.rows);
  params.k = u32(p.k);
  params.groups = u32(groups_of(p.k));
  params.row_blocks = u32(ceil_div(operand.rows, kRowsAtOnce));
  params.batches = u32(own_batches(operand, p));
  params.row_stride = u32(operand.row_stride);
  params.k_stride = u32(operand.k_stride);
  bool whole = operand.k_stride == 1 && operand.row_stride % 4 == 0;
  for (size_t d = 0; d < p.size.size(); ++d) {
    params.size[d] = operand.batch_stride[d] == 0 ? 1 : u32(p.size[d]);
    params.stride[d] = u32(operand.batch_stride[d]);
    whole = whole && operand.batch_stride[d] % 4 == 0;
  }
  launch.over_groups(uint64_t{params.batches} * params.row_blocks,
                     std::min(kRowLanes, launch.features.max_invocations));
  launch.spec.insert(launch.spec.end(), {operand.k_stride != 1, whole});
  launch.params(params);
  launch.shader = &variant(p.dtype == DType::f32 ? X::split : X::halves);
}

// The rows of an operand for the product, and their scales.
struct Rows {
  Tensor rows, scales;
};

Rows rows_of(Graph& graph, Tensor operand, size_t which, const PickProduct& pick) {
  const DType dtype = operand.dtype();
  const Rows made = {graph.scratch(DType::f16, 2), graph.scratch(DType::f32, 1)};
  graph.dispatch({made.rows, made.scales}, {operand}, [=](Launch& launch) {
    const auto picked = pick(launch);
    const int64_t parts = parts_of(dtype);
    if (!picked) {
      made.rows.resize({0, 0});
      return made.scales.resize({0});
    }
    const MatrixProduct& p = picked->product;
    const MatrixOperand& from = which == 0 ? p.a : p.b;
    const int64_t rows = own_batches(from, p) * from.rows;
    made.rows.resize({rows, groups_of(p.k) * kGroup * parts});
    made.scales.resize({parts == 2 ? rows : 0});
    launch_rows(launch, from, p);
  });
  return made;
}

void launch_product(Launch& launch, const PickedProduct& picked, const std::array<MatrixOperand, 2>& operands,
                    const MatrixEpilogue& epilogue) {
  using namespace glsl::matmul_matrix;
  const MatrixProduct& p = picked.product;
  const Tile& t = picked.kernel->tile;
  const MatrixShape& shape = launch.features.matrix_f16[0];
  const bool split = p.dtype == DType::f32;
  Params params{};
  params.m = u32(p.a.rows);
  params.n = u32(p.b.rows);
  params.groups = u32(groups_of(p.k));
  params.batches = u32(p.batches());
  params.row_blocks = u32(ceil_div(p.a.rows, t.bm));
  params.column_blocks = u32(ceil_div(p.b.rows, t.bn));
  params.a_row = u32(operands[0].row_stride / kGroup);
  params.b_column = u32(operands[1].row_stride / kGroup);
  for (size_t d = 0; d < p.size.size(); ++d) {
    params.size[d] = u32(p.size[d]);
    params.a_batch[d] = u32(operands[0].batch_stride[d] / kGroup);
    params.b_batch[d] = u32(operands[1].batch_stride[d] / kGroup);
  }
  const uint32_t shared = tile_shared_bytes(*picked.kernel, shape_of(p).weight, launch.features);
  launch.over_groups(uint64_t{params.batches} * params.row_blocks * params.column_blocks,
                     tile_lanes(*picked.kernel, launch.features));
  launch.spec.insert(launch.spec.end(), {bool(epilogue.bias), p.b.rows % 4 == 0, epilogue.act, t.bm, t.bn, t.tm, t.tn,
                                         shape.m, shape.n, shape.k, shared / 16});
  require_subgroups(launch);
  launch.params(params);
  launch.flops = 2ull * static_cast<uint64_t>(p.batches() * p.a.rows) * static_cast<uint64_t>(p.b.rows * p.k);
  launch.arithmetic = split ? Arithmetic::split3 : Arithmetic::f16;
  launch.split = split;
  launch.shader = &variant(split ? X::split : X::halves);
}

constexpr int64_t kLeastSide = 16;

// What the kernels take: `us` and `k_us` for each column of k, where workgroups are few; `product_us` for a million
// products, where that is more or comes on top. H200, us of glsl/matmul.glsl and of these with their copies, fp16;
// fp32:
//   64 x 64 x 64             7.9,  9.9;  6.6,  9.8        24 x 197 x 64 x 197    42.1, 15.6; 39.9, 21.4
//   128 x 128 x 128         12.9, 11.2; 10.5, 11.2         6 x 197 x 64 x 197    11.0, 13.6;  9.7, 12.6
//   192 x 192 x 192         18.2, 13.0; 14.5, 12.8        12 x 128 x 32 x 128     5.8, 10.1;  5.2, 10.6
//   256 x 256 x 256         23.2, 13.9; 18.4, 14.4        64 x 64 x 64 x 64       8.8, 11.5;  7.7, 13.5
//   384 x 384 x 384         34.8, 20.0; 26.5, 19.2
//   512 x 512 x 512         46.0, 22.5; 34.1, 21.8
struct MatmulCost {
  double us, k_us, product_us;
};
constexpr MatmulCost kTiles[] = {{2.6, 0.062, 0.35}, {2.8, 0.083, 0.35}};    // fp32, fp16
constexpr MatmulCost kMatrices[] = {{2.4, 0.022, 0.06}, {5.5, 0.02, 0.04}};  // without copies
constexpr double kCopyUs = 3;

bool is_copied(const MatrixOperand& operand, const MatrixProduct& p) {
  return p.dtype == DType::f32 || !is_read_directly(operand);
}

// Whether tiles of that kernel, some of them partly empty, take less time than glsl/matmul.glsl.
bool pays(const LinearKernel& kernel, const MatrixProduct& p, const Features& features) {
  const double each = static_cast<double>(p.batches() * p.k) * 1e-6 * 132 / features.units();
  const auto k = static_cast<double>(p.k);
  const double products = each * static_cast<double>(p.a.rows * p.b.rows);
  const int64_t rows = ceil_div(p.a.rows, kernel.tile.bm) * kernel.tile.bm,
                columns = ceil_div(p.b.rows, kernel.tile.bn) * kernel.tile.bn;
  const MatmulCost &tiles = kTiles[p.dtype == DType::f16], &matrices = kMatrices[p.dtype == DType::f16];
  const double copies = kCopyUs * (is_copied(p.a, p) + is_copied(p.b, p));
  return copies + matrices.us + matrices.k_us * k + matrices.product_us * each * static_cast<double>(rows * columns) <
         std::max(tiles.us + tiles.k_us * k, tiles.product_us * products);
}

}  // namespace

bool fits_bindings(const MatrixProduct& p, const Features& features) {
  const uint64_t row = static_cast<uint64_t>(groups_of(p.k)) * 16 * parts_of(p.dtype);
  const auto fits = [&](const MatrixOperand& each) {
    const auto rows = static_cast<uint64_t>(own_batches(each, p) * each.rows);
    return rows <= features.max_storage_bytes / std::max(row, uint64_t{4});
  };
  return fits(p.a) && fits(p.b);
}

bool is_read_directly(const MatrixOperand& operand) {
  const auto whole = [](int64_t stride) { return stride % kGroup == 0; };
  return operand.k_stride == 1 && whole(operand.row_stride) &&
         std::all_of(operand.batch_stride.begin(), operand.batch_stride.end(), whole);
}

bool has_matmul_matrices(DType dtype, const Features& features) {
  const LinearKernel* forced = forced_linear(features);
  if (features.cpu && forced == nullptr) return false;
  for (const Feature feature : {Feature::coopmat, Feature::memory_model, Feature::float16})
    if (!features.has(feature)) return false;
  // Conversions to fp16 must not lose subnormal numbers.
  return dtype == DType::f16 || (features.has(Feature::split) && (features.has(Feature::fragments) || features.cpu));
}

const LinearKernel* pick_matmul_matrices(const MatrixProduct& p, const Features& features) {
  const bool split = p.dtype == DType::f32;
  const LinearShape shape = shape_of(p);
  const auto suits = [&](const LinearKernel& kernel) {
    return kernel.family == Family::matrix && (kernel.input == Input::split) == split &&
           unsupported_reason(kernel, shape, features).empty();
  };
  if (!has_matmul_matrices(p.dtype, features)) return nullptr;
  if (const LinearKernel* forced = forced_linear(features)) return suits(*forced) ? forced : nullptr;
  if (std::min(p.a.rows, p.b.rows) < kLeastSide) return nullptr;
  const LinearKernel* found = nullptr;
  for (const char* name : split ? std::array{"split_matrix128x128", "split_matrix64x64", "split_matrix32x32"}
                                : std::array{"matrix128x128", "matrix64x64", "matrix32x32"}) {
    const LinearKernel& kernel = linear_kernel(name);
    const int64_t groups = p.batches() * ceil_div(p.a.rows, kernel.tile.bm) * ceil_div(p.b.rows, kernel.tile.bn);
    const bool half_empty = std::min(p.a.rows, p.b.rows) <= kernel.tile.bm / 2;  // tiles are square
    if (kernel.tile.bm == 128 && (half_empty || groups < features.filling(128))) continue;
    if (!suits(kernel) || !holds_matrices(kernel.tile, features)) continue;
    found = &kernel;
    if (!half_empty) break;
  }
  return found != nullptr && pays(*found, p, features) ? found : nullptr;
}

void matmul_by_matrices(Graph& graph, Tensor out, std::array<Tensor, 2> operands, std::array<bool, 2> direct,
                        const MatrixEpilogue& epilogue, const PickProduct& pick) {
  std::vector<Tensor> reads, scales;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Rows rows = direct[i] ? Rows{operands[i], {}} : rows_of(graph, operands[i], i, pick);
    reads.push_back(rows.rows);
    scales.push_back(rows.scales);
  }
  reads.push_back(epilogue.bias ? epilogue.bias : reads[0]);
  if (operands[0].dtype() == DType::f32) reads.insert(reads.end(), scales.begin(), scales.end());
  graph.dispatch({out}, reads, [=](Launch& launch) {
    const auto found = pick(launch);
    if (!found) return;
    const MatrixProduct& p = found->product;
    launch_product(launch, *found, {direct[0] ? p.a : in_rows(p.a, p), direct[1] ? p.b : in_rows(p.b, p)}, epilogue);
  });
}

}  // namespace pumice::engine
