// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/norm_launch.h"

#include "glsl/norm.h"
#include "ops/shared/rows.h"

namespace pumice::engine {

void launch_norm(Launch& launch, const Norm& norm) {
  launch.params(glsl::norm::Params{
      .rows = norm.rows, .width = norm.width, .eps = norm.eps, .inner = norm.inner, .channels = norm.channels});
  launch.shader = &glsl::norm::variant(glsl::norm::dtype(norm.dtype));
  launch_rows(launch, norm.rows, norm.width);
  launch.spec.insert(launch.spec.end(), {norm.center, norm.weight, norm.bias, norm.grouped});
}

}  // namespace pumice::engine
