// SPDX-License-Identifier: Apache-2.0
// Images as convolutions by matrices read and write them: [batch][pixel][channel] in cells of 16 bytes, of which only
// such convolutions know. A value is in cells when its first reader wants it so and a convolution writes it; whoever
// else reads it gets a copy.
#pragma once

#include <memory>

#include "ops/conv/convolution.h"

namespace pumice::engine {

struct ConvProduct;  // ops/conv/channels_last_product.h

// Of a value.
struct ChannelsLast {
  Tensor tensor = {};                               // i32, where it lies in cells
  std::shared_ptr<const ConvProduct> product = {};  // who can write it so, if nobody asked for it before
};
std::shared_ptr<ChannelsLast> channels_last_of(Graph& graph, Tensor value);
int64_t channel_groups(int64_t channels, DType dtype);  // of a pixel
// Whether it is in cells, or can be without a copy.
bool has_channels_last(Graph& graph, Tensor value);
Tensor as_channels_last(Graph& graph, Tensor value);
// A copy in cells, made at live shapes whose images are no multiple of 4 pixels; else empty.
Tensor odd_as_channels_last(Graph& graph, Tensor value);
// Adds the node that brings them back.
void from_channels_last(Graph& graph, Tensor out, Tensor cells);

}  // namespace pumice::engine
