// SPDX-License-Identifier: Apache-2.0
// What is made at load of the weight of a convolution by cooperative matrices or dot products.
#pragma once

#include "ops/conv/channels_last_product.h"

namespace pumice::engine {

Tensor pack_chunks(Graph& graph, const ConvProduct& product);     // for all kernels but those of conv/fragments.glslh
Tensor pack_fragments(Graph& graph, const ConvProduct& product);  // for those; of fp32 after row_units()
Tensor row_sums(Graph& graph, const ConvProduct& product);        // of integers
Tensor row_units(Graph& graph, const ConvProduct& product);       // of fp32

}  // namespace pumice::engine
