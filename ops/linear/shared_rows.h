// SPDX-License-Identifier: Apache-2.0
// Kernels whose workgroups share rows of x among columns of row panels (glsl/include/linear/shared_rows.glslh).
#pragma once

#include "ops/linear/kernels.h"

namespace pumice::engine {

// The one to use for that shape, or null where others are faster or none runs. `split`: of those that make two fp16 of
// each fp32.
const LinearKernel* pick_shared_rows(bool split, const LinearShape& shape, const Features& features);

}  // namespace pumice::engine
