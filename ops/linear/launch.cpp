// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/launch.h"

#include <algorithm>

#include "glsl/include/core/modes.glslh"
#include "glsl/linear_fragments.h"
#include "glsl/linear_gemv.h"
#include "glsl/linear_gemv_fragments.h"
#include "glsl/linear_gemv_rows.h"
#include "glsl/linear_matrix.h"
#include "glsl/linear_tiled.h"
#include "ops/linear/pick.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kRowBytes = 8;  // the scale and zero point of a quantized row

using Columns = Epilogue::Columns;

bool has_tiles(const Epilogue& epilogue) {
  return epilogue.height == 0 && (epilogue.rows || epilogue.columns == Columns::tiles);
}

struct LinearBlock {
  uint32_t m, n;   // rows of x and of the weight
  uint32_t first;  // of the weight
};

// What every kernel is launched with.
struct Linear {
  const LinearKernel& kernel;
  DType dtype;
  const PackedWeight& w;
  LinearBlock block;
  const Epilogue& epilogue;
};

// The fields of Params and the specialization constants that all kernels share.
template <class Params>
void describe(Launch& launch, const Linear& l, uint32_t row_blocks) {
  const PackedWeight& w = l.w;
  const auto [m, n, first] = l.block;
  const uint32_t k = x_columns(w, l.epilogue);
  launch.params(Params{m, n, k, panel_tiles(w.k), w.groups, row_blocks, w.n, first, l.epilogue.height});
  launch.spec.insert(launch.spec.end(), {w.group, w.scale_f16, bool(w.zero), bool(l.epilogue.bias),
                                         w.k % 64 == 0                        ? TAIL_NONE
                                         : has_tiles(l.epilogue)              ? TAIL_TILES
                                         : l.epilogue.columns == Columns::any ? TAIL_ANY
                                                                              : TAIL_OF_8,
                                         w.n % 4 == 0, static_cast<uint32_t>(l.epilogue.act), bool(l.epilogue.residual),
                                         bool(l.epilogue.rows)});
  launch.flops = 2ull * m * n * w.k;
}

// Kernels that read a row panel once for some rows of x. Workgroups are counted along the rows first.
template <class Params>
void describe_gemv(Launch& launch, const Linear& l) {
  const LinearKernel& kernel = l.kernel;
  const uint32_t blocks = (l.block.m + kernel.rows - 1) / kernel.rows;
  over_groups(launch, uint64_t{(row_panels(l.block.n) + kernel.panels - 1) / kernel.panels} * blocks,
              gemv_lanes(kernel, l.w.k, launch.features));
  describe<Params>(launch, l, blocks);
}

template <class Params>
void describe_tiles(Launch& launch, const Linear& l) {
  const Tile& t = l.kernel.tile;
  const uint32_t blocks = (l.block.m + t.bm - 1) / t.bm;
  over_groups(launch, uint64_t{(l.block.n + t.bn - 1) / t.bn} * blocks, tile_lanes(l.kernel, launch.features));
  describe<Params>(launch, l, blocks);
}

template <class Params>
void describe_matrices(Launch& launch, const Linear& l, const MatrixShape& shape) {
  const Tile& t = l.kernel.tile;
  describe_tiles<Params>(launch, l);
  launch.spec.insert(launch.spec.end(), {l.block.n, x_columns(l.w, l.epilogue), t.bm, t.bn, t.tm, t.tn, shape.m,
                                         shape.n, shape.k, tile_shared_bytes(l.kernel, launch.features) / 16,
                                         l.block.m >= t.bm, l.w.scales.tame && launch.features.has(Feature::fragments),
                                         static_cast<uint32_t>(l.w.scales.shift)});
  require_subgroups(launch);
}

void launch_gemv(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv;
  describe_gemv<Params>(launch, l);
  launch.spec.insert(launch.spec.end(), {l.kernel.rows, gemv_depth(l.kernel, launch.features), l.kernel.panels});
  launch.shader = &variant(glsl::linear_gemv::dtype(l.dtype), static_cast<WEIGHT>(l.w.type),
                           static_cast<STORAGE>(l.epilogue.height != 0), static_cast<WEIGHT_STORAGE>(l.w.texture));
}

void launch_tiled(Launch& launch, const Linear& l) {
  using namespace glsl::linear_tiled;
  const Tile& t = l.kernel.tile;
  describe_tiles<Params>(launch, l);
  launch.spec.insert(launch.spec.end(), {t.bm, t.bn, t.tm, t.tn});
  launch.shader = &variant(glsl::linear_tiled::dtype(l.dtype), static_cast<WEIGHT>(l.w.type),
                           static_cast<STORAGE>(l.epilogue.height != 0), static_cast<WEIGHT_STORAGE>(l.w.texture));
}

void launch_gemv_fragments(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv_fragments;
  describe_gemv<Params>(launch, l);
  const uint32_t live = l.kernel.rows == 8 ? std::min(l.block.m, 8u) : 8;
  launch.spec.insert(launch.spec.end(),
                     {l.block.n, x_columns(l.w, l.epilogue), l.kernel.panels, l.kernel.rows / 8, live});
  require_subgroups(launch);
  const X x = x_columns(l.w, l.epilogue) % kTileColumns == 0        ? X::whole
              : l.epilogue.columns == Columns::any && l.block.m > 1 ? X::tail
                                                                    : X::tail8;
  launch.shader = &variant(glsl::linear_gemv_fragments::dtype(l.dtype), static_cast<WEIGHT>(l.w.type), x);
}

void launch_gemv_rows(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv_rows;
  describe_gemv<Params>(launch, l);
  launch.spec.push_back(l.kernel.rows);
  launch.shader = &variant(glsl::linear_gemv_rows::dtype(l.dtype), static_cast<WEIGHT>(l.w.type));
}

void launch_block(Launch& launch, const Linear& l) {
  switch (l.kernel.family) {
    case Family::gemv:
      return launch_gemv(launch, l);
    case Family::tiled:
      return launch_tiled(launch, l);
    case Family::matrix:
      describe_matrices<glsl::linear_matrix::Params>(launch, l, launch.features.matrix_f16[0]);
      launch.shader = &glsl::linear_matrix::variant(static_cast<glsl::linear_matrix::WEIGHT>(l.w.type));
      return;
    case Family::fragments:
      describe_matrices<glsl::linear_fragments::Params>(launch, l, {16, 16, 16});
      launch.shader = &glsl::linear_fragments::variant();
      return;
    case Family::gemv_fragments:
      return launch_gemv_fragments(launch, l);
    case Family::gemv_rows:
      return launch_gemv_rows(launch, l);
    case Family::dot_gemv:
    case Family::dot_tiled:
    case Family::matrix_int8:
    case Family::matrix_int8_groups:
      fail(Code::Internal, Stage::plan, "kernel", "'%s' multiplies integers, not floats",
           std::string(l.kernel.name).c_str());
  }
}

// pick_matrix_tail, where the binding ranges of the rows after the whole tiles are aligned.
const LinearKernel* matrix_tail(const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m,
                                const Features& features) {
  const LinearShape shape{
      .m = m, .n = w.n, .k = w.k, .group = w.group, .weight = w.type, .dtype = dtype, .scale_f16 = w.scale_f16};
  const uint64_t least = kernel.tile.bm * std::min<uint64_t>(kRowBytes, device_bytes(dtype));
  return least % features.storage_alignment == 0 ? pick_matrix_tail(kernel, shape, features) : nullptr;
}

}  // namespace

uint32_t x_columns(const PackedWeight& w, const Epilogue& epilogue) {
  return has_tiles(epilogue) ? panel_tiles(w.k) * kTileColumns : w.k;
}

void launch_linear(Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m,
                   const Epilogue& epilogue) {
  const uint64_t element = device_bytes(dtype), out_row = w.n * element;
  const uint64_t x_row = x_columns(w, epilogue) * uint64_t{kernel.family == Family::gemv_fragments ? 2 : element};
  const bool textures = epilogue.height != 0;  // which are bound as a whole, without binding ranges
  const auto row_blocks = split_rows(m, {textures ? 0 : x_row, textures ? 0 : out_row}, launch.features);
  const auto blocks = weight_row_ranges(w, launch.features);
  const bool whole = row_blocks.size() * blocks.size() == 1;
  const auto launch_rows = [&](const LinearKernel& by, const RowRange& rows, const RowRange& block) {
    launch_block(launch, {by, dtype, w, {rows.count, block.count, block.first}, epilogue});
    const uint64_t first = block.first * element;
    const BindingRange x = binding_range(rows, m, x_row);
    BindingRange out = binding_range(rows, m, out_row);  // from the block's first column on
    out = {out.begin + first, out.bytes == 0 ? 0 : out.bytes - first};
    const auto [weight, scale, zero] = weight_binding_ranges(w, block);
    launch.binding_ranges = {out, x, weight,
                             epilogue.bias ? BindingRange{first, 0}
                             : textures    ? BindingRange{}
                                           : x,
                             epilogue.residual ? out : x};
    const BindingRange parameters = epilogue.rows ? binding_range(rows, m, kRowBytes) : scale;
    if (w.scale) launch.binding_ranges.insert(launch.binding_ranges.end(), {scale, zero, parameters});
    launch.next_dispatch();
  };
  if (const LinearKernel* tail = whole ? matrix_tail(kernel, dtype, w, m, launch.features) : nullptr) {
    const uint32_t tiles = m / kernel.tile.bm * kernel.tile.bm;
    launch_rows(kernel, {0, tiles}, blocks.front());
    return launch_rows(*tail, {tiles, m - tiles}, blocks.front());
  }
  if (whole) return launch_block(launch, {kernel, dtype, w, {m, w.n, 0}, epilogue});
  for (const RowRange& rows : row_blocks) {
    for (const RowRange& block : blocks) launch_rows(kernel, rows, block);
  }
}

std::vector<Tensor> linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& epilogue) {
  const Tensor none = x.storage() == StorageType::buffer ? x : Tensor();  // for a binding that takes buffers
  std::vector<Tensor> reads = {x, weight.weight, epilogue.bias ? epilogue.bias : none,
                               epilogue.residual ? epilogue.residual : x};
  if (quantized(weight.type)) {
    reads.push_back(weight.scale);
    reads.push_back(weight.zero ? weight.zero : weight.scale);
    reads.push_back(epilogue.rows ? epilogue.rows : weight.scale);
  }
  return reads;
}

}  // namespace pumice::engine
