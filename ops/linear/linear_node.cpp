// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear_node.h"

#include <algorithm>
#include <cinttypes>
#include <functional>

#include "glsl/pad.h"
#include "ops/linear/launch.h"
#include "ops/linear/normed_product.h"
#include "ops/linear/pick.h"
#include "ops/linear/split_x.h"
#include "ops/shared/shape.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

using Columns = Epilogue::Columns;

// Whether x needs no padding where its rows end inside a vec4 group: a single row begins on a group, and these kernels
// check its end; fragments combine elements from two groups of eight. H200, 4096 -> 14336: with a dispatch that pads,
// one row of 4097 columns took 1.36 to 1.43 times as long as of 4096, 2 to 8 rows 1.31; without padding 1.05 and 1.10
// to 1.12 (int8), 1.08 and 1.23 to 1.25 (int4). 16 rows are slower so than padded.
bool takes_tail(const LinearKernel& kernel, uint32_t m) {
  if (m == 1) return kernel.family != Family::matrix && kernel.family != Family::fragments;
  return kernel.family == Family::gemv_fragments && m <= 8;
}

// x with rows padded with zeros to whole tiles; empty at shapes where it is not `wanted`.
Tensor padded(Graph& graph, Tensor x, uint32_t k, uint32_t columns, Condition wanted) {
  const Tensor out = graph.scratch(x.dtype(), 2);
  graph.dispatch({out}, {x}, [=](Launch& launch) {
    const uint32_t m = wanted(launch) ? u32(x.numel() / k) : 0;
    out.resize({m, columns});
    if (m == 0) return;
    const uint64_t from = k * device_bytes(x.dtype()), to = columns * device_bytes(x.dtype());
    const auto blocks = split_rows(m, {from, to}, launch.features);
    for (const RowRange& block : blocks) {
      glsl::pad::Params params{.count = block.count * columns, .rank = 2, .value = 0};
      params.size[0] = params.in_size[0] = block.count;
      params.size[1] = columns;
      params.in_size[1] = k;
      launch.params(params);
      launch.shader = &glsl::pad::variant(bits<glsl::pad::BITS>(x.dtype()));
      launch.over(block.count * columns / 4);
      if (blocks.size() == 1) return;
      launch.binding_ranges = {binding_range(block, m, to), binding_range(block, m, from)};
      launch.next_dispatch();
    }
  });
  return out;
}

// Whether an fp32 weight is kept as two fp16 for each element, too: where the rows of the export's example, which the
// graph is built with, would be multiplied so.
bool splits_weight(Graph& graph, LinearShape shape) {
  shape.split_weight = true;
  return !shape.textures && may_split_weight(graph.features(), shape) &&
         reads_split_weight(choose_linear(shape, graph.features()), shape.weight);
}

}  // namespace

void linear(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight, Epilogue epilogue) {
  const DType dtype = x.dtype();
  check(out.dtype() == dtype, "%s: x is %s, the output %s", op, name(dtype), name(out.dtype()));
  check(x.rank() >= 1, "%s: x has no dimension", op);
  check_epilogue(op, dtype, epilogue);
  const bool textures = take_textures(graph, x, out, &epilogue.residual);
  epilogue.height = textures;
  LinearShape known = product_shape(weight, dtype, std::max<int64_t>(x.numel() / weight.k, 1));
  known.textures = textures;
  known.layer_norm = !textures && layer_norm_of(graph, x).x;
  known.may_split = true;
  known.split_weight = splits_weight(graph, known);
  const auto live_shape = [=] {
    LinearShape shape = known;
    shape.m = std::max<int64_t>(x.numel() / weight.k, 1);
    return shape;
  };
  const auto kernel_for = [=](const Launch& launch) -> const LinearKernel& {
    return choose_linear(live_shape(), launch.features);
  };
  const auto add_product = [&](const PackedWeight& w, Tensor rows, Epilogue how, Condition wanted) {
    graph.dispatch({out}, linear_reads(rows, w, how), [=](Launch& launch) {
      out.resize(linear_shape(op, x.shape(), w, how));
      const uint32_t m = u32(x.numel() / w.k);
      if (m == 0 || !wanted(launch)) return;
      Epilogue live = how;
      if (textures) live.height = texels_of(x).height;
      launch.tuned = is_tuned(live_shape(), launch.features);
      launch_linear(launch, kernel_for(launch), dtype, w, m, live);
    });
  };
  const bool split_weight = known.split_weight;
  const PackedWeight passes_weight = split_weight ? pre_split_form(graph, weight) : weight;
  const auto by_split = [=](const Launch& launch) { return kernel_for(launch).input == Input::split; };
  if (!textures && may_split_x(graph.features(), x, weight)) {
    const auto split = split_x(graph, x, weight.k, by_split);
    Epilogue how = epilogue;
    how.rows = split->rows;
    const auto of_split = [=](const Launch& launch) { return reads_split_weight(kernel_for(launch), weight.type); };
    add_product(split_form(graph, weight), split->x, how,
                [=](const Launch& launch) { return by_split(launch) && !of_split(launch); });
    if (split_weight)
      add_product(passes_weight, split->x, how,
                  [=](const Launch& launch) { return by_split(launch) && of_split(launch); });
  }
  const Condition norms =
      textures ? nullptr : add_normed_products(graph, op, out, x, weight, passes_weight, epilogue, live_shape);
  const auto normed = [=](const Launch& launch) { return norms && norms(launch); };
  const auto by_splits = [=](const Launch& launch) {
    return split_weight && kernel_for(launch).input == Input::splits && !normed(launch);
  };
  if (split_weight) add_product(passes_weight, x, epilogue, by_splits);
  const auto plain = [=](const Launch& launch) { return !by_split(launch) && !by_splits(launch) && !normed(launch); };
  if (textures || weight.k % 8 == 0) return add_product(weight, x, epilogue, plain);
  const auto tail = [=](const Launch& launch) { return takes_tail(kernel_for(launch), u32(x.numel() / weight.k)); };
  const auto others = [=](const Launch& launch) { return !tail(launch) && plain(launch); };
  epilogue.columns = Columns::tiles;
  add_product(weight, padded(graph, x, weight.k, x_columns(weight, epilogue), others), epilogue, others);
  epilogue.columns = Columns::any;
  add_product(weight, x, epilogue, tail);
}

}  // namespace pumice::engine
