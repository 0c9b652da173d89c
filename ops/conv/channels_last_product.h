// SPDX-License-Identifier: Apache-2.0
// Convolutions of one group whose x is channels-last, as a product by cooperative matrices
// (glsl/include/conv/matrix.glslh, conv/fragments.glslh) or by dot products of bytes (glsl/conv2d_dot.glsl).
#pragma once

#include "ops/conv/channels_last.h"

namespace pumice::engine {

// A tensor that is added to the result of a convolution: act(result + other). Of integers: the scales and zero points
// of both, and how the sum is quantized again.
struct Addition {
  Tensor other = {};
  double scale = 1, other_scale = 1;
  int64_t zero = 0, other_zero = 0;
  Requantize requantize = {};
  int64_t act = 0;
};

// One such convolution, and the tensors that are made for it.
struct ConvProduct : Convolution {
  bool integers;
  int64_t channels;                    // of the output
  int64_t row_taps;                    // that are one (ConvFacts::row_taps)
  Patches window;                      // of x_channels_last: `patches`, or what is left of them then
  int64_t taps, columns;               // of the window; of a tap
  int64_t pixel_groups;                // groups of columns in a tap
  Tensor chunks = {}, fragments = {};  // the packed weight: for all other kernels, for conv/fragments.glslh, or both
  Tensor sums = {}, units = {};        // of its rows: sums of integers, powers of two of fp32
  Tensor x_channels_last = {};         // x in that layout
  bool may_read_nchw = false;          // x may be read as NCHW instead, in vec4 groups of pixels
  bool fragments_read_nchw = false;    // the kernel of conv/fragments.glslh reads x as NCHW
  bool waits = false;                  // until it is written, with x_channels_last: ops/conv/chain.h
  bool to_pixel = false;               // is_pixel(out), which is then written by kernels that write channels-last
  Tensor factors = {};                 // [N, C, 1, 1] that the channels of an NCHW x are multiplied by; else empty
  Addition addition = {};              // its `other` is channels-last

  explicit ConvProduct(const Convolution& convolution);
  int64_t in_width() const { return row_taps > 1 ? patches.count(1, x.dim(3), op) : x.dim(3); }  // as `window` has it
  int64_t pixels() const { return out.dim(0) * out.dim(2) * out.dim(3); }
  bool reads_nchw() const { return may_read_nchw && x.dim(2) * x.dim(3) % 4 == 0; }
  Tensor weights() const { return chunks ? chunks : fragments; }
  // The zero point of x as signed bytes.
  int64_t signed_zero() const { return x_zero - (x.dtype() == DType::u8 ? 128 : 0); }
};

// Whether a convolution is computed so, as far as is known when the graph is built.
bool takes_matrices(const Convolution& convolution, const Features& features);

// Adds the nodes, or defers them to the first reader of `out` (ops/conv/channels_last.h).
void convolution_by_matrices(Graph& graph, const Convolution& convolution);

// Adds the nodes. `into`: the output, or an i32 scratch that gets it channels-last.
void write_product(Graph& graph, const ConvProduct& product, Tensor into);

// For an operator that adds two tensors, `first` and `addition.other`. True when one of them is the output of a
// deferred convolution without other readers and that convolution can add the other tensor itself: the addition is then
// part of the convolution, and the operator adds no node.
bool try_convolution_with(Graph& graph, Tensor out, Tensor first, Addition addition);

// For an operator whose `out` is x: true when x is the output of a deferred convolution without other readers. That
// then writes `out`, and the operator adds no node.
bool try_convolution_into(Graph& graph, Tensor out, Tensor x);

}  // namespace pumice::engine
