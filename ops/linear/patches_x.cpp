// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/patches_x.h"

#include <string>

#include "graph/deferred.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kOctet = 8;  // elements that the shader loads at once

}  // namespace

Epilogue::Patches PatchesX::live() const {
  return {height, width, u32(image.dim(2)), u32(image.dim(3)), zeros};
}

PatchesX& patches_of(Graph& graph, Tensor value) {
  return *graph.shared<PatchesX>("patches " + std::to_string(value.id()));
}

PatchesX& note_patches(Graph& graph, Tensor out, Tensor image, int64_t height, int64_t width, int64_t zeros) {
  PatchesX& noted = patches_of(graph, out);
  const std::vector<Use>& uses = uses_of(graph, out);
  // One size: it is a constant of the shader.
  if (height > image.dim(2) || width > image.dim(3)) return noted;  // the operator refuses it
  if (width % kOctet != 0 || uses.size() != 1 || uses[0].argument != 0 || reader(graph, uses[0]) != "linear" ||
      !has_fixed_shape(graph, image))
    return noted;
  noted.image = image;
  noted.height = u32(height);
  noted.width = u32(width);
  noted.zeros = u32(zeros);
  return noted;
}

}  // namespace pumice::engine
