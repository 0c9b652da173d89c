// SPDX-License-Identifier: Apache-2.0
// Convolutions of one group by cooperative matrices (glsl/include/conv_matrix.glslh) or dot products of bytes
// (glsl/conv2d_dot.glsl), x in cells.
#pragma once

#include "ops/conv/channels_last.h"

namespace pumice::engine {

// What is added to the result of a convolution: act(result + other). Of integers: what they stand for, and how the sum
// becomes integers again.
struct Addition {
  Tensor other = {};
  double scale = 1, other_scale = 1;
  int64_t zero = 0, other_zero = 0;
  Requantize again = {};
  int64_t act = 0;
};

// One such convolution, and what is made for it.
struct ConvProduct : Convolution {
  bool integers;
  int64_t channels, in_channels, taps, cells;  // of the output, of x; cells of a pixel
  Tensor packed = {}, sums = {};               // the weight, and the sums of its rows
  Tensor x_channels_last = {};                         // x in cells
  bool plain = false;                          // x may be read as it lies instead, in quads of pixels
  Addition addition = {};                      // its `other` in cells, where there is one

  explicit ConvProduct(const Convolution& convolution);
  int64_t pixels() const { return out.dim(0) * out.dim(2) * out.dim(3); }
  bool planes() const { return plain && x.dim(2) * x.dim(3) % 4 == 0; }
  // What bytes of x are, signed.
  int64_t signed_zero() const { return x_zero - (x.dtype() == DType::u8 ? 128 : 0); }
};

// Whether they are computed so, as far as is known when the graph is built.
bool takes_matrices(const Convolution& convolution, const Features& features);

// Adds the nodes, or leaves them to whoever reads `out` or adds something to it.
void convolution_by_matrices(Graph& graph, const Convolution& convolution);

// Adds the nodes; `into`: the output, or an i32 for its cells.
void write_product(Graph& graph, const ConvProduct& product, Tensor into);

// For an operator that adds two tensors, `addition.other` the second: whether one of them comes from a convolution that
// nobody else reads and that can add the other one itself. Then there is nothing left to do.
bool try_convolution_with(Graph& graph, Tensor out, Tensor first, Addition addition);

}  // namespace pumice::engine
