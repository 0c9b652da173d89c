// SPDX-License-Identifier: Apache-2.0
// References of matmul and sdpa, with the bounds of their header comments, and the activations at the end of a product.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

double activated(double y, uint32_t act);  // ACT_* of glsl/include/math/activation.glslh
double slope(uint32_t act);                // its largest, to two digits
// What the activation itself may be off at y.
double activation_error(double y, uint32_t act);

void matmul(HostCall& call);
void sdpa(HostCall& call);

}  // namespace pumice::engine::reference
