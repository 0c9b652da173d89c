// SPDX-License-Identifier: Apache-2.0
// All layers of a decoder at one new row as one dispatch, glsl/decoder_layers.glsl, in place of five for each layer:
//   fused_linear (norm; q, k and v), cached_attention (one row), linear (residual), fused_linear (norm; gate and up,
//   gated), linear (residual)
// with weights of 4 bits in groups, their scales in fp16, no zero points; x and caches fp16; layers of equal sizes.
// Where a method is an embedding, such layers, a head and sample_token, all steps of a call become one dispatch.
// Waits between dispatches, each some microseconds, become waits for words in memory. H200: docs/llm.md.
#pragma once

#include "graph/merge.h"

namespace pumice::engine {

// For OperatorCallbacks::merge.
std::vector<Merged> merge_decoder_layers(const Graph& graph, std::span<const RunningNode> nodes, bool steps);

}  // namespace pumice::engine
