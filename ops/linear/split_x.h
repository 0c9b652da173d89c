// SPDX-License-Identifier: Apache-2.0
// x in fp32 as two fp16 for each element, for kernels that multiply fp16 (Input::split).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/linear/packed_weight.h"

namespace pumice::engine {

// Whether a kernel that reads x so can multiply x, in a buffer, with that weight on this device at some size.
bool may_split_x(const Features& features, const Tensor& x, const PackedWeight& weight);
// Whether a kernel that takes fp32 weights as two fp16 (pre_split_form) can compute that product, at some m, of an
// operator that keeps them so.
bool may_split_weight(const Features& features, LinearShape shape);

// What glsl/linear_split.glsl makes: x of fp16, [m, 2, whole tiles of k], and rows [m, 2]. Made once for all
// that read the same x; empty at launches where none wants it.
struct SplitX {
  Tensor x, rows;
  std::vector<std::function<bool(const Launch&)>> wanted;
};
std::shared_ptr<SplitX> split_x(Graph& graph, Tensor x, uint32_t k, std::function<bool(const Launch&)> wanted);

}  // namespace pumice::engine
