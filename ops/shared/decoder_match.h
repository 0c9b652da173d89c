// SPDX-License-Identifier: Apache-2.0
// Which nodes of a method glsl/decoder_layers.glsl takes, by what their operators say of them (ops/shared/phases.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/merge.h"
#include "ops/shared/phases.h"

namespace pumice::engine {

constexpr size_t kLayerNodes = 5, kSampleNodes = 3;
constexpr size_t kX = 0, kResidual = 3;  // positions of linear_reads

struct DecoderLayer {
  const ProductPhase *qkv, *out, *feed, *down;
  const AttentionPhase* attention;
  const RunningNode* nodes;  // kLayerNodes
};

// All that a method does, round its layers.
struct DecoderStep {
  const EmbeddingPhase* embedding;
  const ProductPhase* head;
  const SamplePhase* sample;
  std::span<const RunningNode> nodes;
};

// The layers that begin at `nodes`, each on what the one before makes, of equal sizes; none where no layer begins.
std::vector<DecoderLayer> decoder_layers(std::span<const RunningNode> nodes);

// Empty where the nodes, all of a method, are not an embedding, the layers, a head and a sample_token.
std::optional<DecoderStep> decoder_step(const Graph& graph, std::span<const RunningNode> nodes,
                                        const std::vector<DecoderLayer>& layers);

}  // namespace pumice::engine
