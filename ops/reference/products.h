// SPDX-License-Identifier: Apache-2.0
// References of matmul, sdpa, sdpa_heads and squeeze_excite, with the bounds of their header comments or, where it is
// smaller, the bound by chance of ops/shared/sum_error.h; and the activations at the end of a product.
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

// Of a query row, for attention that splits fp32: over all keys the largest scale * sum|q k|, and scale * e times the
// largest |q| and |k|.
struct SplitScores {
  double size = 0, reach = 0;
};
// What it may be off more (glsl/sdpa_fragments.glsl): `error`, as matrix units may cut off where others round; 2^-21 of
// each term of a sum, 2^-49 of the largest factors; weights below 2^-24 of the largest have 11 bits. `largest`: of the
// values of one element, `most`: of all.
double split_attention(const SplitScores& scores, double error, double keys, double total, double largest, double most);

void matmul(HostCall& call);
void conv2d_depthwise_channels_last(HostCall& call);
void sdpa(HostCall& call);
void sdpa_heads(HostCall& call);
void squeeze_excite(HostCall& call);

}  // namespace pumice::engine::reference
