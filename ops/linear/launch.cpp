// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/launch.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "glsl/linear_fragments.h"
#include "glsl/linear_fragments_split.h"
#include "glsl/linear_gemv.h"
#include "glsl/linear_gemv_fragments.h"
#include "glsl/linear_gemv_row_fragments.h"
#include "glsl/linear_gemv_rows.h"
#include "glsl/linear_matrix.h"
#include "glsl/linear_tiled.h"
#include "ops/linear/describe.h"
#include "ops/linear/gemv_lanes.h"
#include "ops/linear/pick.h"
#include "ops/shared/phases.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kRowBytes = 8;  // the scale and zero point of a quantized row

using Columns = Epilogue::Columns;

bool has_tiles(const Epilogue& epilogue) {
  return epilogue.height == 0 && (epilogue.rows || epilogue.columns == Columns::tiles);
}

// Kernels that read a row panel once for some rows of x. Workgroups are counted along the rows first.
template <class Params>
void describe_gemv(Launch& launch, const Linear& l) {
  const LinearKernel& kernel = l.kernel;
  const uint32_t blocks = (l.block.m + kernel.rows - 1) / kernel.rows;
  launch.over_groups(uint64_t{(row_panels(l.block.n) + kernel.panels - 1) / kernel.panels} * blocks,
                     gemv_lanes(kernel, l.block.m, l.block.n, l.w.k, launch.features));
  describe<Params>(launch, l, blocks);
}

template <class Params>
void describe_tiles(Launch& launch, const Linear& l) {
  const Tile& t = l.kernel.tile;
  const uint32_t blocks = (l.block.m + t.bm - 1) / t.bm;
  launch.over_groups(uint64_t{(l.block.n + t.bn - 1) / t.bn} * blocks, tile_lanes(l.kernel, launch.features));
  describe<Params>(launch, l, blocks);
}

template <class Params>
void describe_matrices(Launch& launch, const Linear& l, const MatrixShape& shape) {
  const Tile& t = l.kernel.tile;
  describe_tiles<Params>(launch, l);
  launch.spec.insert(launch.spec.end(), {l.block.n, x_columns(l.w, l.epilogue), t.bm, t.bn, t.tm, t.tn, shape.m,
                                         shape.n, shape.k, tile_shared_bytes(l.kernel, l.w.type, launch.features) / 16,
                                         l.block.m >= t.bm, l.w.scales.tame && launch.features.has(Feature::fragments),
                                         static_cast<uint32_t>(l.w.scales.shift), l.epilogue.gated});
  require_subgroups(launch);
}

// Vec4 groups of a row of x in whole tiles, for a kernel that norms it; else 0.
uint32_t normed_groups(const Linear& l) {
  return l.epilogue.norm ? panel_tiles(l.w.k) * kTileColumns / 4 : 0;
}

void launch_gemv(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv;
  describe_gemv<Params>(launch, l);
  const bool whole_ahead =
      gemv_whole_ahead(l.kernel, {.m = l.block.m, .n = l.block.n, .k = l.w.k, .weight = l.w.type}, launch.features);
  launch.spec.insert(launch.spec.end(),
                     {l.kernel.rows, gemv_depth(l.kernel, whole_ahead, launch.features), l.kernel.panels,
                      normed_groups(l), l.epilogue.gated, l.epilogue.center, whole_ahead});
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
  const bool pairs = takes_pairs(l.kernel);
  const uint32_t live = pairs                ? std::bit_ceil(std::min(l.block.m, l.kernel.rows))
                        : l.kernel.rows == 8 ? std::min(l.block.m, 8u)
                                             : 8;
  launch.spec.insert(launch.spec.end(), {l.block.n, x_columns(l.w, l.epilogue), l.kernel.own_panels(),
                                         pairs ? 1 : l.kernel.rows / 8, live, normed_groups(l), l.epilogue.gated});
  require_subgroups(launch);
  const LayerNorms& norms = l.epilogue.norms;
  const Epilogue::Patches& patches = l.epilogue.patches;
  const bool split = l.kernel.input == Input::splits, reads_more = norms.any() || patches.height != 0;
  const X x = reads_more                                            ? (split ? X::split_normed : X::normed)
              : pairs                                               ? X::pairs
              : split                                               ? X::split
              : x_columns(l.w, l.epilogue) % kTileColumns == 0      ? X::whole
              : l.epilogue.columns == Columns::any && l.block.m > 1 ? X::tail
                                                                    : X::tail8;
  if (reads_more)
    launch.spec.insert(
        launch.spec.end(),
        {static_cast<uint32_t>(norms.x.from), static_cast<uint32_t>(norms.residual.from),
         std::bit_cast<uint32_t>(norms.residual.eps), norms.leaves, patches.width / 8, std::max(patches.height, 1u),
         std::max(patches.image_width / 8, 1u), std::max(patches.image_height, 1u), patches.zeros});
  if (x == X::whole || x == X::split || reads_more) launch.spec.push_back(l.kernel.columns);
  launch.shader = &variant(glsl::linear_gemv_fragments::dtype(l.dtype), static_cast<WEIGHT>(l.w.type), x);
}

void launch_gemv_row(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv_row_fragments;
  const RowWorkgroup w = gemv_row_workgroup(l.kernel, l.block.n, l.w.k, l.w.type, l.epilogue.gated, launch.features);
  launch.over_groups(uint64_t{w.workgroups} * l.block.m, w.panels * w.slots * 32);
  describe<Params>(launch, l, l.block.m);
  launch.spec.insert(launch.spec.end(), {l.block.n, l.w.k, w.panels, w.depth, w.workgroups, l.epilogue.gated});
  if (l.dtype == DType::f16) launch.spec.push_back(normed_groups(l));
  require_subgroups(launch);
  launch.shader = &variant(glsl::linear_gemv_row_fragments::dtype(l.dtype), static_cast<WEIGHT>(l.w.type));
}

void launch_gemv_rows(Launch& launch, const Linear& l) {
  using namespace glsl::linear_gemv_rows;
  describe_gemv<Params>(launch, l);
  launch.spec.insert(launch.spec.end(), {l.kernel.rows, l.kernel.panels, normed_groups(l), l.epilogue.gated});
  const bool by_address = launch.features.cpu && launch.features.has(Feature::addresses) && !l.epilogue.norm;
  const uint64_t x_bytes = uint64_t{l.block.m} * x_columns(l.w, l.epilogue) * device_bytes(l.dtype);
  if (by_address) launch.addresses = {{offsetof(Params, x_address), 1, x_bytes}};
  launch.shader = &variant(glsl::linear_gemv_rows::dtype(l.dtype), static_cast<WEIGHT>(l.w.type),
                           by_address ? X::address : X::bound);
}

void launch_block(Launch& launch, const Linear& l) {
  switch (l.kernel.family) {
    case Family::gemv:
      return launch_gemv(launch, l);
    case Family::tiled:
      return launch_tiled(launch, l);
    case Family::matrix:
      describe_matrices<glsl::linear_matrix::Params>(launch, l, launch.features.matrix_f16[0]);
      launch.shader = &glsl::linear_matrix::variant(
          l.kernel.input == Input::split ? glsl::linear_matrix::X::split : glsl::linear_matrix::X::halves,
          l.w.type == WeightType::q4   ? glsl::linear_matrix::WEIGHT::q4
          : l.w.type == WeightType::q8 ? glsl::linear_matrix::WEIGHT::q8
                                       : glsl::linear_matrix::WEIGHT::real);
      return;
    case Family::fragments:
      if (l.w.type == WeightType::f32) {
        describe_matrices<glsl::linear_fragments_split::Params>(launch, l, {16, 16, 16});
        launch.shader = &glsl::linear_fragments_split::variant();
        return;
      }
      describe_matrices<glsl::linear_fragments::Params>(launch, l, {16, 16, 16});
      launch.shader = &glsl::linear_fragments::variant(
          l.kernel.input == Input::split ? glsl::linear_fragments::X::split : glsl::linear_fragments::X::halves);
      return;
    case Family::gemv_fragments:
      return launch_gemv_fragments(launch, l);
    case Family::gemv_rows:
      return launch_gemv_rows(launch, l);
    case Family::gemv_row:
      return launch_gemv_row(launch, l);
    case Family::dot_gemv:
    case Family::dot_tiled:
    case Family::matrix_int8:
    case Family::matrix_int8_groups:
      fail(Code::Internal, Stage::plan, "kernel", "'%s' multiplies integers, not floats",
           std::string(l.kernel.name).c_str());
  }
}

// pick_matrix_tail, where the binding ranges of the rows after the whole tiles are aligned.
const LinearKernel* matrix_tail(const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m, bool gated,
                                const Features& features) {
  const LinearShape shape = product_shape(w, dtype, m);
  const uint64_t least = kernel.tile.bm * std::min<uint64_t>(kRowBytes, device_bytes(dtype));
  const LinearKernel* tail =
      least % features.storage_alignment == 0 ? pick_matrix_tail(kernel, shape, features) : nullptr;
  return tail != nullptr && gated ? gated_kernel(*tail) : tail;
}

uint64_t x_row_bytes(const LinearKernel& kernel, DType dtype, const PackedWeight& w, const Epilogue& epilogue) {
  const bool halves = kernel.family == Family::gemv_fragments && kernel.input == Input::floats;
  return x_columns(w, epilogue) * uint64_t{halves ? 2 : device_bytes(dtype)};
}

// Blocks of x's rows that bindings of x and the output hold; textures are bound as a whole.
std::vector<RowRange> split_rows_of_x(const Launch& launch, const LinearKernel& kernel, DType dtype,
                                      const PackedWeight& w, uint32_t m, const Epilogue& epilogue) {
  const bool textures = epilogue.height != 0;
  const uint64_t x_row = x_row_bytes(kernel, dtype, w, epilogue),
                 out_row = (epilogue.gated ? w.n / 2 : w.n) * uint64_t{device_bytes(dtype)};
  return split_rows(m, {textures ? 0 : x_row, textures ? 0 : out_row}, launch.features);
}

}  // namespace

uint32_t x_columns(const PackedWeight& w, const Epilogue& epilogue) {
  return has_tiles(epilogue) ? panel_tiles(w.k) * kTileColumns : w.k;
}

uint32_t tail_of(const PackedWeight& w, const Epilogue& epilogue) {
  if (w.k % kTileColumns == 0) return TAIL_NONE;
  if (has_tiles(epilogue)) return TAIL_TILES;
  return epilogue.columns == Columns::any ? TAIL_ANY : TAIL_OF_8;
}

bool is_one_launch(const Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m,
                   const Epilogue& epilogue) {
  return split_rows_of_x(launch, kernel, dtype, w, m, epilogue).size() == 1 &&
         weight_row_ranges(w, launch.features).size() == 1;
}

void launch_linear(Launch& launch, const LinearKernel& kernel, DType dtype, const PackedWeight& w, uint32_t m,
                   const Epilogue& epilogue) {
  const uint64_t element = device_bytes(dtype), out_row = (epilogue.gated ? w.n / 2 : w.n) * element;
  const uint64_t x_row = x_row_bytes(kernel, dtype, w, epilogue);
  const bool textures = epilogue.height != 0;  // which are bound as a whole, without binding ranges
  const auto row_blocks = split_rows_of_x(launch, kernel, dtype, w, m, epilogue);
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
  if (const LinearKernel* tail = whole ? matrix_tail(kernel, dtype, w, m, epilogue.gated, launch.features) : nullptr) {
    const uint32_t tiles = m / kernel.tile.bm * kernel.tile.bm;
    launch_rows(kernel, {0, tiles}, blocks.front());
    return launch_rows(*tail, {tiles, m - tiles}, blocks.front());
  }
  if (whole) {
    launch_block(launch, {kernel, dtype, w, {m, w.n, 0}, epilogue});
    launch.writes_once = true;
    if (m == 1 && !textures && !epilogue.center) launch.phase = std::make_shared<ProductPhase>(w, epilogue, dtype);
    return;
  }
  for (const RowRange& rows : row_blocks) {
    for (const RowRange& block : blocks) launch_rows(kernel, rows, block);
  }
}

std::vector<Tensor> linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& epilogue) {
  const Tensor none = x.storage() == StorageType::buffer ? x : Tensor();  // for a binding that takes buffers
  std::vector<Tensor> reads = {x, weight.weight, epilogue.bias ? epilogue.bias : none,
                               epilogue.residual ? epilogue.residual
                               : epilogue.norm   ? epilogue.norm
                                                 : x};
  if (weight.scale) {
    reads.push_back(weight.scale);
    reads.push_back(weight.zero ? weight.zero : weight.scale);
    reads.push_back(epilogue.rows ? epilogue.rows : weight.scale);
  }
  return reads;
}

std::vector<Tensor> normed_linear_reads(Tensor x, const PackedWeight& weight, const Epilogue& epilogue) {
  std::vector<Tensor> reads = linear_reads(x, weight, epilogue);
  for (const LayerNorms::Norm* norm : {&epilogue.norms.x, &epilogue.norms.residual}) {
    reads.push_back(norm->factors ? norm->factors : x);
    reads.push_back(norm->moments ? norm->moments : x);
  }
  return reads;
}

}  // namespace pumice::engine
