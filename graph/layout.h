// SPDX-License-Identifier: Apache-2.0
// Where each tensor of a graph lies at the live shapes: in the arena, or in which image.
#pragma once

#include "graph/graph_impl.h"
#include "graph/plan.h"
#include "vulkan/image.h"

namespace pumice::engine {

struct Layout {
  std::vector<uint32_t> memory_root;  // of each tensor: Graph::Impl::memory_root
  std::vector<uint64_t> offset;       // of each tensor whose memory is in the arena
  std::vector<uint64_t> bytes;        // of each tensor; padded to 16, at least 16
  Plan plan;                          // of the arena
  std::vector<ImageShape> images;     // of the run, each shared by textures of its shape that do not live at once
  std::vector<uint32_t> image;        // of each tensor in a texture: index in images
};

// `keeps_inputs`: nothing else gets the memory of inputs.
Layout layout(const Graph& graph, bool keeps_inputs = false);

}  // namespace pumice::engine
