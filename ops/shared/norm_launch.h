// SPDX-License-Identifier: Apache-2.0
// The launch of glsl/norm.glsl. Bindings: out, x, weight, bias; x again for those that are absent.
#pragma once

#include "ops/shared/args.h"

namespace pumice::engine {

struct Norm {
  DType dtype;
  uint32_t rows, width;
  uint32_t inner = 1;     // neighbours that share an element of weight and bias
  uint32_t channels = 0;  // elements of these
  float eps = 0;
  bool center = false;  // layer_norm and group_norm
  bool weight = false, bias = false;
  bool grouped = false;  // inner is not 1
};
void launch_norm(Launch& launch, const Norm& norm);

}  // namespace pumice::engine
