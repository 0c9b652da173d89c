// SPDX-License-Identifier: Apache-2.0
// What the launches of all kernels of linear/linear.glslh share.
#pragma once

#include <algorithm>

#include "glsl/include/core/modes.glslh"
#include "ops/linear/launch.h"

namespace pumice::engine {

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

// TAIL_* of glsl/include/core/modes.glslh.
uint32_t tail_of(const PackedWeight& weight, const Epilogue& epilogue);

// Sets the fields of Params and the specialization constants that all kernels share.
template <class Params>
Params describe(Launch& launch, const Linear& l, uint32_t row_blocks) {
  const PackedWeight& w = l.w;
  Params params{};
  params.m = l.block.m;
  params.n = l.block.n;
  params.k = x_columns(w, l.epilogue);
  params.tiles = panel_tiles(w.k);
  params.groups = w.groups;
  params.row_blocks = row_blocks;
  params.stride = l.epilogue.gated ? w.n / 2 : w.n;
  params.first = l.block.first;
  params.height = l.epilogue.height;
  params.eps = l.epilogue.norms.x.from != MomentsOf::none ? l.epilogue.norms.x.eps : l.epilogue.eps;
  launch.params(params);
  launch.spec.insert(launch.spec.end(),
                     {w.group, w.scale_f16, bool(w.zero), bool(l.epilogue.bias), tail_of(w, l.epilogue), w.n % 4 == 0,
                      static_cast<uint32_t>(l.epilogue.act), bool(l.epilogue.residual), bool(l.epilogue.rows)});
  launch.flops = 2ull * l.block.m * l.block.n * w.k;
  const bool quantized = w.type == WeightType::q4 || w.type == WeightType::q8;
  const bool integers = l.epilogue.rows && l.kernel.input != Input::split;  // as whole numbers in floats
  const Arithmetic split = quantized ? Arithmetic::split2 : Arithmetic::split3;
  launch.arithmetic = integers ? Arithmetic::i8 : l.dtype == DType::f16 ? Arithmetic::f16 : split;
  launch.split = l.kernel.input == Input::split || l.kernel.input == Input::splits;
  return params;
}

}  // namespace pumice::engine
