// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/int8_launch.h"

#include <algorithm>

#include "glsl/include/core/modes.glslh"
#include "glsl/linear_dot_gemv.h"
#include "glsl/linear_dot_tiled.h"
#include "glsl/linear_matrix_int8.h"
#include "glsl/linear_matrix_int8_groups.h"
#include "glsl/linear_pack_sums.h"
#include "ops/linear/int8_kernels.h"
#include "ops/linear/pick_int8.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

// What a dispatch computes: some rows of x by some rows of the weight.
struct OutputBlock {
  RowRange rows, columns;
};

template <class Params>
Params params_of(const IntegerProduct& p, const OutputBlock& block, uint32_t m, uint32_t row_blocks, bool words) {
  const PackedWeight& w = p.weight;
  Params params{};
  params.m = block.rows.count;
  params.n = block.columns.count;
  params.k = w.k;
  params.row_blocks = row_blocks;
  params.stride = p.stride;
  params.words_m = m;
  params.first_m = words ? block.rows.first : 0;
  params.first = block.columns.first;
  params.out_inverse = p.requantize.inverse();
  params.out_zero = static_cast<float>(p.requantize.zero);
  params.out_low = static_cast<float>(p.requantize.low);
  params.out_high = static_cast<float>(p.requantize.high);
  return params;
}

// Specialization constants 1 to 11.
void describe(Launch& launch, const IntegerProduct& p) {
  const PackedWeight& w = p.weight;
  launch.spec.insert(launch.spec.end(),
                     {w.group, w.scale_f16, bool(w.zero), bool(p.epilogue.bias), p.stride % 4 == 0,
                      static_cast<uint32_t>(p.epilogue.act), bool(p.epilogue.residual), p.requantize.scales.stored,
                      p.requantize.zeros.stored, w.k, p.rows.may_have_zero()});
}

template <class OUT>
OUT out_of(const IntegerProduct& p) {
  return p.bytes() ? OUT::bytes : p.out.dtype() == DType::f16 ? OUT::f16 : OUT::f32;
}

template <class Params>
void describe_matrix(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                     const OutputBlock& block) {
  const Features& features = launch.features;
  const Tile& t = kernel.tile;
  const MatrixShape& shape = features.matrix_s8[0];
  const uint32_t blocks = (block.rows.count + t.bm - 1) / t.bm;
  launch.over_groups(uint64_t{(block.columns.count + t.bn - 1) / t.bn} * blocks, matrix_int8_lanes(kernel, features));
  launch.params(params_of<Params>(p, block, m, blocks, true));
  describe(launch, p);
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn, shape.m, shape.n, shape.k,
                                         matrix_int8_shared(kernel, features) / 16, kernel.depth});
  require_subgroups(launch);
}

void launch_matrix(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                   const OutputBlock& block) {
  using namespace glsl::linear_matrix_int8;
  describe_matrix<Params>(launch, kernel, p, m, block);
  launch.shader = &variant(out_of<OUT>(p), static_cast<WEIGHT>(p.weight.type));
}

void launch_matrix_groups(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                          const OutputBlock& block) {
  using namespace glsl::linear_matrix_int8_groups;
  describe_matrix<Params>(launch, kernel, p, m, block);
  launch.shader = &variant(out_of<OUT>(p), static_cast<WEIGHT>(p.weight.type));
}

void launch_tiled(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                  const OutputBlock& block) {
  using namespace glsl::linear_dot_tiled;
  const Tile& t = kernel.tile;
  const uint32_t blocks = (block.rows.count + t.bm - 1) / t.bm;
  launch.over_groups(uint64_t{(block.columns.count + t.bn - 1) / t.bn} * blocks, t.subtiles());
  launch.params(params_of<Params>(p, block, m, blocks, true));
  describe(launch, p);
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn});
  launch.shader = &variant(out_of<OUT>(p), static_cast<WEIGHT>(p.weight.type),
                           p.weight.texture ? WEIGHT_STORAGE::texture2d : WEIGHT_STORAGE::buffer);
}

void launch_gemv(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                 const OutputBlock& block) {
  using namespace glsl::linear_dot_gemv;
  const bool words = kernel.input == Input::words;
  const uint32_t blocks = (block.rows.count + kernel.rows - 1) / kernel.rows;
  launch.over_groups(uint64_t{(row_panels(block.columns.count) + kernel.panels - 1) / kernel.panels} * blocks,
                     dot_gemv_lanes(kernel, p.shape(m), launch.features));
  auto params = params_of<Params>(p, block, m, blocks, words);
  if (!words) put_source(params, p.rows, m, p.op);
  launch.params(params);
  describe(launch, p);
  launch.spec.insert(launch.spec.end(), {kernel.rows, dot_gemv_depth(launch.features), kernel.panels});
  const std::vector<uint32_t> spec = source_spec(p.rows, p.weight.k);
  if (!words) launch.spec.insert(launch.spec.end(), spec.begin(), spec.end());
  launch.shader = &variant(out_of<OUT>(p), static_cast<WEIGHT>(p.weight.type),
                           !words             ? X::direct
                           : p.weight.texture ? X::texture2d
                                              : X::words);
}

void launch_block(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m,
                  const OutputBlock& block) {
  if (kernel.family == Family::matrix_int8)
    launch_matrix(launch, kernel, p, m, block);
  else if (kernel.family == Family::matrix_int8_groups)
    launch_matrix_groups(launch, kernel, p, m, block);
  else if (kernel.family == Family::dot_tiled)
    launch_tiled(launch, kernel, p, m, block);
  else
    launch_gemv(launch, kernel, p, m, block);
  launch.flops = 2ull * block.rows.count * block.columns.count * p.weight.k;
  launch.arithmetic = Arithmetic::i8;
}

// The binding range of a parameter with an element for each row; all of it where one element is for all rows; `none`
// where the parameter is absent.
BindingRange parameters(const Parameter& parameter, const RowRange& rows, uint32_t m, const BindingRange& none) {
  if (!parameter.tensor) return none;
  if (parameter.tensor.numel() == 1) return {};
  return binding_range(rows, m, device_bytes(parameter.tensor.dtype()));
}

// In the order of integer_reads, which binds the scales where something is absent.
std::vector<BindingRange> binding_ranges(const IntegerProduct& p, Input input, const OutputBlock& block, uint32_t m) {
  const uint64_t element = device_bytes(p.rows.real_dtype()), out_element = device_bytes(p.out.dtype());
  const auto [weight, scale, zero] = weight_binding_ranges(p.weight, block.columns);
  BindingRange out = binding_range(block.rows, m, p.stride * out_element);  // from the block's first column on
  const uint64_t first = block.columns.first * out_element;
  out = {out.begin + first, out.bytes == 0 ? 0 : out.bytes - first};
  const BindingRange x = binding_range(block.rows, m, p.weight.k * uint64_t{device_bytes(p.rows.x.dtype())});
  std::vector<BindingRange> all = {out,
                                   input == Input::x ? x : BindingRange{},
                                   weight,
                                   p.epilogue.bias ? BindingRange{block.columns.first * element, 0} : scale,
                                   p.epilogue.residual ? out : scale,
                                   scale,
                                   zero};
  if (p.bytes()) {
    all.push_back(parameters(p.requantize.scales, block.rows, m, scale));
    all.push_back(parameters(p.requantize.zeros, block.rows, m, scale));
  }
  if (input == Input::x) {
    all.push_back(parameters(p.rows.scales, block.rows, m, scale));
    all.push_back(parameters(p.rows.zeros, block.rows, m, scale));
  } else {
    all.emplace_back();
  }
  all.push_back(p.weight.group == 0 ? binding_range(block.columns, p.weight.n, 4) : scale);
  return all;
}

}  // namespace

std::vector<Tensor> integer_reads(const IntegerProduct& p, Input input, Tensor x, Tensor rows, Tensor sums) {
  const PackedWeight& w = p.weight;
  const auto or_scale = [&](const Tensor& tensor) { return tensor ? tensor : w.scale; };
  std::vector<Tensor> reads = {x,       w.weight,        or_scale(p.epilogue.bias), or_scale(p.epilogue.residual),
                               w.scale, or_scale(w.zero)};
  if (p.bytes()) reads.insert(reads.end(), {or_scale(p.requantize.scales.tensor), or_scale(p.requantize.zeros.tensor)});
  if (input == Input::x)
    reads.insert(reads.end(), {or_scale(p.rows.scales.tensor), or_scale(p.rows.zeros.tensor)});
  else
    reads.push_back(rows);
  reads.push_back(or_scale(sums));
  return reads;
}

void launch_integers(Launch& launch, const LinearKernel& kernel, const IntegerProduct& p, uint32_t m) {
  const uint64_t x_row = kernel.input == Input::x ? p.weight.k * uint64_t{device_bytes(p.rows.x.dtype())} : 0;
  const auto row_blocks = split_rows(m, {x_row, p.stride * uint64_t{device_bytes(p.out.dtype())}}, launch.features);
  const auto column_blocks = weight_row_ranges(p.weight, launch.features);
  const bool whole = row_blocks.size() * column_blocks.size() == 1;
  if (const LinearKernel* gemv = whole ? pick_tail(kernel, p.shape(m), launch.features) : nullptr) {
    const uint32_t tiles = m / kernel.tile.bm * kernel.tile.bm;
    const OutputBlock head{{0, tiles}, column_blocks.front()}, tail{{tiles, m - tiles}, column_blocks.front()};
    const std::vector<BindingRange> all = binding_ranges(p, kernel.input, tail, m);
    const auto aligned = [&](const BindingRange& range) {
      return range.begin % launch.features.storage_alignment == 0;
    };
    if (std::all_of(all.begin(), all.end(), aligned)) {
      for (const auto& [block, by] : {std::pair(head, &kernel), std::pair(tail, gemv)}) {
        launch_block(launch, *by, p, m, block);
        launch.binding_ranges = binding_ranges(p, by->input, block, m);
        launch.next_dispatch();
      }
      return;
    }
  }
  for (const RowRange& rows : row_blocks) {
    for (const RowRange& columns : column_blocks) {
      launch_block(launch, kernel, p, m, {rows, columns});
      if (whole) return;
      launch.binding_ranges = binding_ranges(p, kernel.input, {rows, columns}, m);
      launch.next_dispatch();
    }
  }
}

Tensor weight_sums(Graph& graph, const PackedWeight& w) {
  if (w.group != 0) return {};
  const uint32_t pairs = row_panels(w.n) * 8;
  const uint64_t row_bytes = static_cast<uint64_t>(w.weight.numel()) * 4 / (pairs * 2);
  return graph.prepack("linear_pack_sums", {w.weight}, DType::i32, {pairs * int64_t{2}}, [=](Launch& launch) {
    for (const RowRange& block : split_rows(pairs * 2, {row_bytes}, launch.features)) {
      launch.over(block.count / 2);
      const auto first = w.texture ? static_cast<uint32_t>(block.first * row_bytes / 16) : 0;
      launch.params(glsl::linear_pack_sums::Params{panel_tiles(w.k), block.count / 2, first});
      launch.shader = &glsl::linear_pack_sums::variant(static_cast<glsl::linear_pack_sums::WEIGHT>(w.type),
                                                       static_cast<glsl::linear_pack_sums::WEIGHT_STORAGE>(w.texture));
      launch.binding_ranges = {{block.first * uint64_t{4}, block.count * uint64_t{4}},
                               {block.first * row_bytes, block.count * row_bytes}};
      launch.next_dispatch();
    }
  });
}

}  // namespace pumice::engine
