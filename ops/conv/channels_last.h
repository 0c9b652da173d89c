// SPDX-License-Identifier: Apache-2.0
// The layout between two convolutions, and when it is channels-last. This is the one choice of a layout that depends on
// the device; it is made while the graph is built.
//
// Channels-last is [batch][pixel][channel], the channels of a pixel padded to groups of 8 floats or 16 bytes.
// Every other value of an image is NCHW. The rule:
//
// 1. A convolution computes from channels-last x when it is of floats or of 8-bit integers with weights without zero
//    points, has one group and more than 4 output channels, is not transposed, and has its values in buffers that one
//    binding holds; and when the device has a kernel for it: cooperative matrices of its dtype (of
//    fp32, those that multiply fp16), or integer dot products (takes_matrices, channels_last_unsupported_reason,
//    pick_conv). CPU drivers have none by default.
// 2. It can write its output channels-last when it uses cooperative matrices and the channels of an output pixel are
//    whole groups. Its node is then deferred (Graph::defer) until the first operator reads the output.
// 3. If that reader is a convolution of rule 1, the output is written channels-last; further readers that need NCHW get
//    a copy. Any other first reader gets NCHW.
// 4. If the only reader adds another tensor of the same shape and dtype, the addition becomes the epilogue of the
//    convolution (try_convolution_with). The sum is then always written channels-last.
// 5. A pointwise convolution of floats reads an NCHW x as it is where the kernel of few pixels computes it and the
//    shapes are fixed (fragments_take_nchw), of fp16 also where an image has a multiple of 4 pixels. Every other x that
//    is NCHW is copied to channels-last first, unless its images are always one pixel of whole groups of channels: then
//    the layouts are the same, but for u8, which is signed in the other one.
// 6. Where such an x, NCHW, is the product of an image and factors of its channels that nothing else reads
//    (ops/conv/scaled_image.h), the convolution, or that copy, multiplies while it loads.
// 7. Pooling over two dimensions, of whole groups of channels, reads what rules 2 and 7 write channels-last, and is
//    deferred like a convolution; the mean of all pixels of an x that is not read otherwise is written at once: its
//    layouts are the same (ops/conv/image_pooling.h).
// 8. A depthwise convolution that alone reads what a pointwise one of rule 2 leaves deferred is one dispatch with it
//    (ops/conv/expanded_depthwise.h). Its result is deferred, and written channels-last for a reader of rule 1.
// 9. Where a pixel of x would be mostly padding, as of colors, that copy has what all taps of a row see instead
//    (ConvFacts::row_taps). Where nothing else reads an x that is quantized from floats, that copy quantizes it
//    (ops/conv/quantized_image.h).
#pragma once

#include <functional>
#include <memory>

#include "ops/conv/convolution.h"

namespace pumice::engine {

struct ConvProduct;  // ops/conv/channels_last_product.h

// The channels-last form of a value.
struct ChannelsLast {
  Tensor tensor = {};                               // i32: the value in that layout; empty: not written
  std::function<void(Tensor into)> write = {};      // adds the nodes that write it so, of a deferred operator
  std::shared_ptr<const ConvProduct> product = {};  // that operator, where it is a convolution
};
std::shared_ptr<ChannelsLast> channels_last_of(Graph& graph, Tensor value);
int64_t channel_groups(int64_t channels, DType dtype);  // groups of channels in a pixel, the last one padded
int64_t group_words(DType dtype);                       // of 32 bits
// Whether images always are one pixel of whole groups of channels: both layouts are the same, but of u8, which is
// signed in the channels-last one.
bool is_pixel(Graph& graph, Tensor value);
// Whether the value is channels-last, or can be written so without a copy.
bool has_channels_last(Graph& graph, Tensor value);
// The value as channels-last: as it was written, by its deferred operator, or by a copy.
Tensor as_channels_last(Graph& graph, Tensor value);
// A copy, by `factors` of its channels where they are given, that is made only at live shapes whose images are no
// multiple of 4 pixels; else empty.
Tensor odd_as_channels_last(Graph& graph, Tensor value, Tensor factors);
// A copy of f32, multiplied by `factors` of its channels.
Tensor scaled_as_channels_last(Graph& graph, Tensor value, Tensor factors);
// What the taps of each row of the convolution's window see, as glsl/conv2d_row_taps.glsl says; `border`: what bytes in
// the padding are.
Tensor row_taps_as_channels_last(Graph& graph, const Convolution& convolution, int64_t border);
// Adds the node that copies channels-last to NCHW.
void from_channels_last(Graph& graph, Tensor out, Tensor channels_last);

}  // namespace pumice::engine
