// SPDX-License-Identifier: Apache-2.0
// Three convolutions of 8-bit integers as one dispatch (glsl/conv2d_chain_fragments_int8.glsl): one of a window and two
// of single pixels, the first of which may add a tensor, as the last two layers of a residual block and the first of
// the next one do.
//
// It is found while the graph is built, among deferred values (graph/deferred.h): a convolution of single pixels that
// reads what a deferred convolution writes waits, so that x stays deferred until the output is asked for. Then all
// three are written at once, or x is, as ever.
#pragma once

#include "ops/conv/channels_last_product.h"

namespace pumice::engine {

// Channels of the outputs, vectors of 16 channels of a patch, and pixels of the batch.
struct ChainShape {
  std::array<int64_t, 3> channels;
  int64_t patch_groups, pixels;
};

// Blocks of 8 pixels that a workgroup has; 0: three dispatches are better, or the device lacks what it needs.
uint32_t pick_chain(const ChainShape& shape, const Features& features);
uint32_t chain_shared_bytes(const ChainShape& shape, uint32_t blocks);

// Whether a convolution waits: of a fixed shape, and where the rest of a chain may follow.
bool waits_for_chain(Graph& graph, const ConvProduct& product);
// True where `last` and the two convolutions before it became one dispatch, which writes `last` into `into`,
// channels-last.
bool try_chain(Graph& graph, const ConvProduct& last, Tensor into);

}  // namespace pumice::engine
