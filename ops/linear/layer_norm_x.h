// SPDX-License-Identifier: Apache-2.0
// Layer norms that only linears read, as x or as residual, some of which may norm the rows themselves (fuses_layer_norm
// of ops/linear/kernels.h). The norm's own dispatch runs at the shapes where one of them reads its result. What a
// norm's rows are made by, a linear, too, may leave moments of its rows, so that these readers need not read whole rows
// for mean and variance.
//
// What is noted here lives as long as the graph: conditions, which are called in launches, may refer to it.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "ops/linear/kernels.h"

namespace pumice::engine {

using Condition = std::function<bool(const Launch&)>;

struct LayerNormX;

// Of the rows of a linear's result, for each MOMENTS_COLUMNS columns: mean and the sum of the squared distances from
// it.
struct RowMoments {
  Tensor tensor = {};                         // f32 [rows, columns / 16, 2], or empty; without it no linear notes them
  Condition possible = {};                    // whether the kernel of this launch can leave them
  std::vector<const LayerNormX*> norms = {};  // of this value
  bool left(const Launch& launch) const;      // they can, and a norm's readers use them
};

struct LayerNormX {
  Tensor x = {}, weight = {}, bias = {};  // x is empty where the value is no such norm
  float eps = 0;
  const RowMoments* moments = nullptr;  // of x
  uint32_t readers = 0;
  std::vector<Condition> normed = {};  // of readers: whether they can norm x at this launch

  // Whether all readers norm x themselves.
  bool is_fused(const Launch& launch) const;
  MomentsOf moments_at(const Launch& launch) const;
};

// Notes that `out` is the layer norm over the last dimension of x with weight and bias [k], where linears may take it
// in: with both, constant. Called by the norm before its readers are built.
LayerNormX& note_layer_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias, double eps);
// What was noted for `value`; without x for other values.
LayerNormX& layer_norm_of(Graph& graph, Tensor value);
// Those of a linear's result.
RowMoments& moments_of(Graph& graph, Tensor value);
// Whether a layer norm reads the value.
bool is_layer_normed(const Graph& graph, Tensor value);
// Weight and bias as one constant [2, k].
Tensor pack_layer_norm(Graph& graph, const LayerNormX& norm);

}  // namespace pumice::engine
