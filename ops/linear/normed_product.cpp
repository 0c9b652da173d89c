// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/normed_product.h"

#include "glsl/include/core/modes.glslh"
#include "ops/linear/launch.h"
#include "ops/linear/pick.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// What the kernel of a launch does besides the product.
struct Steps {
  bool x = false, residual = false;  // makes them by a layer norm
  bool leaves = false;               // moments
  bool any() const { return x || residual || leaves; }
};

struct Product {
  Tensor x;
  const PackedWeight& weight;
  const Epilogue& epilogue;
  const std::function<LinearShape()>& live_shape;

  // Whether the kernel of a launch `can`, in one dispatch.
  template <class Can>
  Condition kernel_if(Can can) const {
    return [=, rows = x, w = weight, how = epilogue, shape_now = live_shape](const Launch& launch) {
      const LinearShape shape = shape_now();
      const LinearKernel& kernel = choose_linear(shape, launch.features);
      return rows.numel() == 0 || (can(kernel, shape, launch) &&
                                   is_one_launch(launch, kernel, rows.dtype(), w, u32(rows.numel() / w.k), how));
    };
  }
};

LayerNormX* noted(Graph& graph, Tensor value) {
  LayerNormX& norm = layer_norm_of(graph, value);
  return norm.x ? &norm : nullptr;
}

LayerNorms::Norm reads_of(Graph& graph, const LayerNormX& norm) {
  return {pack_layer_norm(graph, norm), norm.moments->tensor, MomentsOf::none, norm.eps};
}

}  // namespace

Condition add_normed_products(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight,
                              const Epilogue& epilogue, const std::function<LinearShape()>& live_shape) {
  if (!graph.features().has(Feature::fragments) || (weight.type == WeightType::f32 && !weight.scale)) return nullptr;
  LayerNormX* const of_x = noted(graph, x);
  LayerNormX* const of_residual = epilogue.residual ? noted(graph, epilogue.residual) : nullptr;
  const bool may_leave = is_layer_normed(graph, out);
  if (of_x == nullptr && of_residual == nullptr && !may_leave) return nullptr;

  const Product product{x, weight, epilogue, live_shape};
  RowMoments& moments = moments_of(graph, out);
  moments.tensor = graph.scratch(DType::f32, 3);
  if (may_leave)
    moments.possible =
        product.kernel_if([](const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
          return leaves_moments(kernel, shape, launch.features);
        });
  const auto note = [&](LayerNormX* norm, auto fuses) {
    if (norm == nullptr) return;
    norm->normed.push_back(
        product.kernel_if([=](const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
          return fuses(kernel, shape, norm->moments_at(launch), norm->readers, launch.features);
        }));
  };
  note(of_x, fuses_layer_norm);
  note(of_residual, fuses_residual_norm);
  const auto steps_at = [=, &moments](const Launch& launch) {
    const auto fused = [&](const LayerNormX* norm) { return norm != nullptr && norm->is_fused(launch); };
    return Steps{fused(of_x), fused(of_residual), moments.left(launch)};
  };

  const auto add = [&](bool by_x, bool by_residual) {
    Epilogue how = epilogue;
    if (by_x) how.norms.x = reads_of(graph, *of_x);
    if (by_residual) {
      how.norms.residual = reads_of(graph, *of_residual);
      how.residual = of_residual->x;
    }
    const Tensor rows = by_x ? of_x->x : x;
    graph.dispatch({out, moments.tensor}, normed_linear_reads(rows, weight, how), [=, &moments](Launch& launch) {
      out.resize(linear_shape(op, x.shape(), weight, epilogue));
      const int64_t m = x.numel() / weight.k;
      const Steps steps = steps_at(launch);
      moments.tensor.resize({steps.leaves ? m : 0, weight.n / MOMENTS_COLUMNS, 2});
      if (m == 0 || !steps.any() || steps.x != by_x || steps.residual != by_residual) return;
      Epilogue live = how;
      if (by_x) live.norms.x.from = of_x->moments_at(launch);
      if (by_residual) live.norms.residual.from = MomentsOf::left;
      live.norms.leaves = steps.leaves;
      const LinearShape shape = live_shape();
      launch.tuned = is_tuned(shape, launch.features);
      launch_linear(launch, choose_linear(shape, launch.features), x.dtype(), weight, u32(m), live);
    });
  };
  for (const bool by_x : {false, true}) {
    for (const bool by_residual : {false, true}) {
      const bool there_is = (!by_x || of_x != nullptr) && (!by_residual || of_residual != nullptr);
      if (there_is && (by_x || by_residual || may_leave)) add(by_x, by_residual);
    }
  }
  return [=](const Launch& launch) { return steps_at(launch).any(); };
}

}  // namespace pumice::engine
