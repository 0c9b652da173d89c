// SPDX-License-Identifier: Apache-2.0
// Patches of an image that one linear reads, as x, whose kernel may read them where they are in the image
// (glsl/include/linear/patches.glslh). The copy of the patches runs at the shapes where it does not.
#pragma once

#include <functional>

#include "graph/graph.h"
#include "ops/linear/epilogue.h"

namespace pumice::engine {

struct PatchesX {
  Tensor image = {};  // [n, channels, height, width]; empty where the value is no such patches
  Epilogue::Patches sizes = {};
  std::function<bool(const Launch&)> read = {};  // whether the linear reads the image at this launch
  bool is_read(const Launch& launch) const { return read && read(launch); }
};

// Notes that `out` is the patches of that size, with rows of zeros in front of those of an image, where a kernel may
// read them so. Called by their operator before the reader is built.
PatchesX& note_patches(Graph& graph, Tensor out, Tensor image, int64_t height, int64_t width, int64_t zeros);
// What was noted for `value`; without an image for other values.
PatchesX& patches_of(Graph& graph, Tensor value);

}  // namespace pumice::engine
