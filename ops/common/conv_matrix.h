// SPDX-License-Identifier: Apache-2.0
// Convolutions of one group by cooperative matrices (glsl/include/conv_matrix.glslh) or dot products of bytes
// (glsl/conv2d_dot.glsl), x in cells.
#pragma once

#include "ops/common/conv.h"

namespace pumice {

// Whether they are computed so, as far as is known when the graph is built.
bool takes_matrices(const Convolution& convolution, const Features& features);

// Adds the nodes.
void convolution_by_matrices(Graph& graph, const Convolution& convolution);

}  // namespace pumice
