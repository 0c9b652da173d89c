// SPDX-License-Identifier: Apache-2.0
// All layers of a decoder at one new row as one dispatch, glsl/decoder_layers.glsl, in place of five for each layer:
//   fused_linear (norm; q, k and v), cached_attention (one row), linear (residual), fused_linear (norm; gate and up,
//   gated), linear (residual)
// with weights of 4 bits in groups, their scales in fp16, no zero points; x and caches fp16; layers of equal sizes.
// Waits between dispatches, each some microseconds, become waits for words in memory. H200: docs/performance.md.
#pragma once

#include "graph/merge.h"
#include "ops/linear/epilogue.h"
#include "ops/shared/cached_attention_launch.h"

namespace pumice::engine {

// The product of one row that a dispatch computes, in a node that reads and writes as linear_reads says.
struct ProductPhase : Phase {
  PackedWeight weight;
  Epilogue epilogue;
  DType dtype;
  ProductPhase(const PackedWeight& the_weight, const Epilogue& the_epilogue, DType the_dtype)
      : weight(the_weight), epilogue(the_epilogue), dtype(the_dtype) {}
};

// The attention of one row.
struct AttentionPhase : Phase {
  Caches caches;
  Tensor out, new_keys, new_values;
  uint32_t call;
  AttentionPhase(const Caches& the_caches, Tensor the_out, Tensor keys, Tensor values, uint32_t the_call)
      : caches(the_caches), out(the_out), new_keys(keys), new_values(values), call(the_call) {}
};

// For OperatorCallbacks::merge.
std::vector<Merged> merge_decoder_layers(const Graph& graph, std::span<const RunningNode> nodes);

}  // namespace pumice::engine
