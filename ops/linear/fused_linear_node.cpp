// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/fused_linear_node.h"

#include <algorithm>
#include <cinttypes>
#include <functional>

#include "glsl/gate_multiply.h"
#include "ops/linear/launch.h"
#include "ops/linear/pick.h"
#include "ops/linear/registers.h"
#include "ops/linear/split_x.h"
#include "ops/shared/norm_launch.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "fused_linear";

// What a launch of the product does: whether its kernel norms x and gates the sums, and whether it reads x split.
struct Steps {
  bool norm, gate, split;
  bool operator==(const Steps&) const = default;
};
struct Fusion {
  const LinearKernel* kernel;
  Steps steps;
  bool tuned = false;
};

struct Layer {
  Tensor x;
  PackedWeight weight;
  Epilogue epilogue;

  uint32_t rows() const { return u32(x.numel() / weight.k); }
  Fusion fusion(const Launch& launch) const;
  Fusion fusion(const Launch& launch, const LinearShape& shape, const LinearKernel* kernel) const;
};

// What was tuned is a product alone: it is taken where it leaves no more dispatches than the table's choice.
Fusion Layer::fusion(const Launch& launch) const {
  LinearShape shape = product_shape(weight, x.dtype(), std::max<int64_t>(rows(), 1));
  shape.may_split = shape.fused = true;
  Fusion chosen = fusion(launch, shape, &choose_linear(shape, launch.features));
  if (!is_tuned(shape, launch.features)) return chosen;
  const Fusion other = fusion(launch, shape, &pick_linear(shape, launch.features));
  if (chosen.steps.norm < other.steps.norm || chosen.steps.gate < other.steps.gate) return other;
  chosen.tuned = true;
  return chosen;
}

Fusion Layer::fusion(const Launch& launch, const LinearShape& shape, const LinearKernel* kernel) const {
  const bool split = kernel->input == Input::split;
  Epilogue how = epilogue;
  if (split) how.columns = Epilogue::Columns::tiles;
  // Kernels gate and norm whole weights and outputs only, not blocks that fit a binding.
  const bool whole = is_one_launch(launch, *kernel, x.dtype(), weight, rows(), how);
  const LinearKernel* gated = epilogue.gated && whole ? gated_kernel(*kernel) : nullptr;
  const bool gate =
      gated != nullptr && unsupported_reason(*gated, shape, launch.features).empty() &&
      (gated->family != Family::gemv || holds_pass(gated->rows * gated->panels, shape.dtype, launch.features));
  if (gate) kernel = gated;
  // Sums without their gate are scratch, whose product reads the normed row: no dispatch norms without gating.
  const bool norm = epilogue.norm && whole && gate == epilogue.gated && fuses_norm(*kernel, shape, launch.features);
  return {kernel, {norm, gate, split}};
}

void check_layer(const Layer& layer, Tensor out) {
  const DType dtype = layer.x.dtype();
  const PackedWeight& w = layer.weight;
  const Epilogue& epilogue = layer.epilogue;
  check(out.dtype() == dtype, "%s: x is %s, the output %s", kOp, name(dtype), name(out.dtype()));
  check(layer.x.rank() >= 1, "%s: x has no dimension", kOp);
  check_epilogue(kOp, dtype, epilogue);
  check_weight_of(kOp, layer.x, w);
  check(w.k % 8 == 0, "%s: %u columns; a multiple of 8 is needed", kOp, w.k);
  check(!epilogue.gated || w.n % 32 == 0, "%s: a gated weight of %u rows; a multiple of 32 is needed", kOp, w.n);
  check(!epilogue.norm || (epilogue.norm.dtype() == dtype && epilogue.norm.rank() == 1),
        "%s: the norm's weight must be %s of rank 1", kOp, name(dtype));
}

// The shape of the product, or of what the gate leaves of it.
Shape shape_of(const Layer& layer, bool gate) {
  check(!layer.epilogue.norm || layer.epilogue.norm.dim(0) == layer.weight.k,
        "%s: the norm's weight has %" PRId64 " elements, a row of x %u", kOp, layer.epilogue.norm.dim(0),
        layer.weight.k);
  Shape shape = linear_shape(kOp, layer.x.shape(), layer.weight, layer.epilogue);
  if (gate) shape.back() /= 2;
  return shape;
}

// x after its norm, where the product's kernel does not norm it; else empty.
Tensor normed(Graph& graph, const Layer& layer) {
  const Tensor out = graph.scratch(layer.x.dtype(), layer.x.rank());
  graph.dispatch({out}, {layer.x, layer.epilogue.norm, layer.x}, [=](Launch& launch) {
    shape_of(layer, false);
    const uint32_t rows = layer.fusion(launch).steps.norm ? 0 : layer.rows();
    Shape shape = layer.x.shape();
    if (rows == 0) shape.front() = 0;
    out.resize(shape);
    if (rows != 0)
      launch_norm(launch, {.dtype = layer.x.dtype(),
                           .rows = rows,
                           .width = layer.weight.k,
                           .channels = layer.weight.k,
                           .eps = layer.epilogue.eps,
                           .weight = true});
  });
  return out;
}

// The product into `out` of x, which has `rows` where it is split, with that form of the weight, at launches with these
// steps.
void product(Graph& graph, Tensor out, Tensor x, const Layer& layer, const PackedWeight& weight, Steps steps,
             Tensor rows = {}) {
  Epilogue epilogue = layer.epilogue;
  epilogue.gated = steps.gate;
  epilogue.rows = rows;
  if (!steps.norm) epilogue.norm = {};
  if (!steps.gate && layer.epilogue.gated) epilogue.act = 0;
  graph.dispatch({out}, linear_reads(x, weight, epilogue), [=](Launch& launch) {
    const Fusion now = layer.fusion(launch);
    const bool live = now.steps == steps && layer.rows() != 0;
    Shape shape = shape_of(layer, steps.gate);
    if (!steps.gate && layer.epilogue.gated && (now.steps.gate || layer.rows() == 0))
      shape.front() = 0;  // scratch that no launch needs
    out.resize(shape);
    if (!live) return;
    launch.tuned = now.tuned;
    launch_linear(launch, *now.kernel, layer.x.dtype(), weight, layer.rows(), epilogue);
  });
}

void gate_multiply(Graph& graph, Tensor out, Tensor sums, const Layer& layer) {
  graph.dispatch({out}, {sums}, [=](Launch& launch) {
    out.resize(shape_of(layer, true));
    if (layer.fusion(launch).steps.gate || out.numel() == 0) return;
    const uint32_t count = u32(out.numel()) / 4;
    launch.over(count);
    launch.params(glsl::gate_multiply::Params{count});
    launch.spec.push_back(static_cast<uint32_t>(layer.epilogue.act));
    launch.shader = &glsl::gate_multiply::variant(glsl::gate_multiply::dtype(out.dtype()));
  });
}

}  // namespace

void fused_linear(Graph& graph, Tensor out, Tensor x, const PackedWeight& weight, const Epilogue& epilogue) {
  const Layer layer{x, weight, epilogue};
  check_layer(layer, out);
  const Tensor row = epilogue.norm ? normed(graph, layer) : x;
  std::shared_ptr<SplitX> split;
  PackedWeight split_weight;
  if (may_split_x(graph.features(), x, weight)) {
    split_weight = split_form(graph, weight);
    split = split_x(graph, row, weight.k, [=](const Launch& launch) { return layer.fusion(launch).steps.split; });
  }
  const auto products = [&](Tensor to, bool gate) {
    product(graph, to, row, layer, weight, {.norm = false, .gate = gate, .split = false});
    if (split)
      product(graph, to, split->x, layer, split_weight, {.norm = false, .gate = gate, .split = true}, split->rows);
  };
  if (epilogue.norm) product(graph, out, x, layer, weight, {.norm = true, .gate = epilogue.gated, .split = false});
  products(out, epilogue.gated);
  if (!epilogue.gated) return;
  const Tensor sums = graph.scratch(x.dtype(), x.rank());
  products(sums, false);
  gate_multiply(graph, out, sums, layer);
}

}  // namespace pumice::engine
