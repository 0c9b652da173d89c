// SPDX-License-Identifier: Apache-2.0
// The launches of a convolution whose x is channels-last, or NCHW of single pixels (ops/conv/channels_last_product.h).
#pragma once

#include "ops/conv/channels_last_product.h"

namespace pumice::engine {

bool is_padded(const ConvProduct& product);
// For so many pixels of the batch; with the packing of its weight, once that is known.
ConvShape shape_of(const ConvProduct& product, int64_t pixels);

void multiply_by_fragments(Launch& launch, const ConvProduct& product, const ConvKernel& kernel,
                           bool channels_last_out);
// By matrices or dot products.
void multiply(Launch& launch, const ConvProduct& product, const ConvPick& pick, bool channels_last_out);
// The dispatch that adds what splits left.
void add_splits(Launch& launch, const ConvProduct& product, uint32_t splits, bool channels_last_out);

}  // namespace pumice::engine
