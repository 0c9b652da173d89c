// SPDX-License-Identifier: Apache-2.0
// A layer norm that only linears read, some of which may norm x themselves (fuses_layer_norm of ops/linear/kernels.h).
// The norm's own dispatch then runs at the shapes where one of them reads its result.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

struct LayerNormX {
  Tensor x = {}, weight = {}, bias = {};  // x is empty where the value is no such norm
  float eps = 0;
  uint32_t readers = 0;
  std::vector<std::function<bool(const Launch&)>> normed;  // of readers: whether they norm x at this launch

  // Whether a reader wants the result.
  bool runs(const Launch& launch) const;
};

// Notes that `out` is the layer norm over the last dimension of x with weight and bias [k], where a linear may take it
// in: of fp16, with both, constant. Called by the norm before its readers are built.
std::shared_ptr<LayerNormX> note_layer_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias, double eps);
// What was noted for `value`; without x for other values.
std::shared_ptr<LayerNormX> layer_norm_of(Graph& graph, Tensor value);
// Weight and bias as one constant [2, k].
Tensor pack_layer_norm(Graph& graph, const LayerNormX& norm);

}  // namespace pumice::engine
