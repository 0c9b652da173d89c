// SPDX-License-Identifier: Apache-2.0
// References of matmul, sdpa and squeeze_excite, with the bounds of their header comments or, where it is smaller, the
// bound by chance of ops/shared/sum_error.h; and the activations at the end of a product.
#pragma once

#include "ops/shared/host_call.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine::reference {

double activated(double y, uint32_t act);  // ACT_* of glsl/include/math/activation.glslh
double slope(uint32_t act);                // its largest, to two digits
// What the activation itself may be off at y.
double activation_error(double y, uint32_t act);

// What attention by matrices may be off because its weights, e^(score - the largest) with the sum `total`, are rounded
// to fp16; `sums`: of the weights times values, over `keys`. Those below 2^-14 round absolutely, by 2^-25.
double halved_weights(const TermSums& sums, double keys, double total, double largest);

void matmul(HostCall& call);
void conv2d_depthwise_channels_last(HostCall& call);
void sdpa(HostCall& call);
void squeeze_excite(HostCall& call);

}  // namespace pumice::engine::reference
