// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/normed_product.h"

#include "glsl/include/core/modes.glslh"
#include "ops/linear/launch.h"
#include "ops/linear/patches_x.h"
#include "ops/linear/pick.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// What the kernel of a launch does besides the product.
struct Steps {
  bool x = false, residual = false;  // makes them by a layer norm
  bool patches = false;              // reads x in an image
  bool leaves = false;               // moments
  bool any() const { return x || residual || patches || leaves; }
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

// What the kernels of a product may do besides it. Lives in launches: what it points to lives as long as the graph.
struct Fusions {
  LayerNormX *x = nullptr, *residual = nullptr;  // null: none
  PatchesX* patches = nullptr;
  RowMoments* moments = nullptr;
  Condition normed_row;  // whether glsl/linear_gemv.glsl could norm the only row of this launch

  bool by_row(const Launch& launch) const { return x != nullptr && x->is_fused(launch) && normed_row(launch); }
  Steps at(const Launch& launch) const {
    if (by_row(launch)) return {};
    return {.x = x != nullptr && x->is_fused(launch),
            .residual = residual != nullptr && residual->is_fused(launch),
            .patches = patches != nullptr && patches->is_read(launch),
            .leaves = moments->left(launch)};
  }
};

// One row, which glsl/linear_gemv.glsl norms. `runs`: at a launch.
void add_normed_row(Graph& graph, const char* op, Tensor out, Tensor x, const Product& product, const LayerNormX& norm,
                    const Condition& runs) {
  Epilogue how = product.epilogue;
  how.norm = pack_layer_norm(graph, norm);
  how.eps = norm.eps;
  how.center = true;
  graph.dispatch({out}, linear_reads(norm.x, product.weight, how),
                 [=, weight = product.weight, live_shape = product.live_shape](Launch& launch) {
                   out.resize(linear_shape(op, x.shape(), weight, how));
                   if (x.numel() == 0 || !runs(launch)) return;
                   const LinearShape shape = live_shape();
                   launch.tuned = is_tuned(shape, launch.features);
                   launch_linear(launch, choose_linear(shape, launch.features), x.dtype(), weight, u32(shape.m), how);
                 });
}

// Passes by matrices that take the steps `by`, and leave moments where the launch wants them.
void add_passes(Graph& graph, const char* op, Tensor out, const Product& product, const Fusions& may, Steps by) {
  Epilogue how = product.epilogue;
  if (by.x) how.norms.x = reads_of(graph, *may.x);
  if (by.residual) {
    how.norms.residual = reads_of(graph, *may.residual);
    how.residual = may.residual->x;
  }
  const Tensor x = product.x, rows = by.x ? may.x->x : by.patches ? may.patches->image : x;
  graph.dispatch(
      {out, may.moments->tensor}, normed_linear_reads(rows, product.weight, how),
      [=, epilogue = product.epilogue, weight = product.weight, live_shape = product.live_shape](Launch& launch) {
        out.resize(linear_shape(op, x.shape(), weight, epilogue));
        const int64_t m = x.numel() / weight.k;
        const Steps steps = may.at(launch);
        may.moments->tensor.resize({steps.leaves ? m : 0, weight.n / MOMENTS_COLUMNS, 2});
        const bool mine = steps.x == by.x && steps.residual == by.residual && steps.patches == by.patches;
        if (m == 0 || !steps.any() || !mine) return;
        Epilogue live = how;
        if (by.x) live.norms.x.from = may.x->moments_at(launch);
        if (by.residual) live.norms.residual.from = MomentsOf::left;
        if (by.patches) live.patches = may.patches->sizes;
        live.norms.leaves = steps.leaves;
        const LinearShape shape = live_shape();
        launch.tuned = is_tuned(shape, launch.features);
        launch_linear(launch, choose_linear(shape, launch.features), x.dtype(), weight, u32(m), live);
      });
}

}  // namespace

Condition add_normed_products(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight,
                              const PackedWeight& passes, const Epilogue& epilogue,
                              const std::function<LinearShape()>& live_shape) {
  const bool by_passes =
      graph.features().has(Feature::fragments) && (passes.type != WeightType::f32 || bool(passes.scale));
  LayerNormX* const of_x = noted(graph, x);
  LayerNormX* const of_residual = by_passes && epilogue.residual ? noted(graph, epilogue.residual) : nullptr;
  PatchesX* const patches = by_passes && patches_of(graph, x).image ? &patches_of(graph, x) : nullptr;
  const bool may_leave = by_passes && is_layer_normed(graph, out);
  if (of_x == nullptr && of_residual == nullptr && patches == nullptr && !may_leave) return nullptr;

  const Product product{x, passes, epilogue, live_shape}, of_row{x, weight, epilogue, live_shape};
  RowMoments& moments = moments_of(graph, out);
  Fusions may{of_x, of_residual, patches, &moments, nullptr};
  may.normed_row = of_row.kernel_if([=, has_residual = bool(epilogue.residual)](
                                        const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
    return !has_residual && centers_row(kernel, shape, launch.features);
  });
  if (by_passes) moments.tensor = graph.scratch(DType::f32, 3);
  if (may_leave)
    moments.possible =
        product.kernel_if([](const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
          return leaves_moments(kernel, shape, launch.features);
        });
  const auto kernel_norms = [&](const LayerNormX* norm, auto fuses) {
    return product.kernel_if([=](const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
      return fuses(kernel, shape, norm->moments_at(launch), norm->readers, launch.features);
    });
  };
  if (of_x != nullptr)
    of_x->normed.push_back([=, row = may.normed_row, by_matrices = kernel_norms(of_x, fuses_layer_norm)](
                               const Launch& launch) { return row(launch) || (by_passes && by_matrices(launch)); });
  if (of_residual != nullptr) of_residual->normed.push_back(kernel_norms(of_residual, fuses_residual_norm));
  if (patches != nullptr)
    patches->read = product.kernel_if([](const LinearKernel& kernel, const LinearShape& shape, const Launch& launch) {
      return reads_patches(kernel, shape, launch.features);
    });
  if (of_x != nullptr && !epilogue.residual)
    add_normed_row(graph, op, out, x, of_row, *of_x, [=](const Launch& launch) { return may.by_row(launch); });
  for (const bool residual : {false, true}) {
    if (!by_passes || (residual && of_residual == nullptr)) continue;
    if (residual || may_leave) add_passes(graph, op, out, product, may, {.residual = residual});
    if (of_x != nullptr) add_passes(graph, op, out, product, may, {.x = true, .residual = residual});
    if (patches != nullptr) add_passes(graph, op, out, product, may, {.residual = residual, .patches = true});
  }
  return [=](const Launch& launch) { return may.by_row(launch) || may.at(launch).any(); };
}

}  // namespace pumice::engine
