// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/patches_x.h"

#include <string>

#include "graph/deferred.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kOctet = 8;  // elements that the shader loads at once

}  // namespace

PatchesX& patches_of(Graph& graph, Tensor value) {
  return *graph.shared<PatchesX>("patches " + std::to_string(value.id()));
}

PatchesX& note_patches(Graph& graph, Tensor out, Tensor image, int64_t height, int64_t width, int64_t zeros) {
  PatchesX& noted = patches_of(graph, out);
  const std::vector<Use>& uses = uses_of(graph, out);
  const bool of_a_linear = uses.size() == 1 && uses[0].argument == 0 && reader(graph, uses[0]) == "linear";
  const bool fits = height <= image.dim(2) && width <= image.dim(3);  // else the operator refuses it
  // Sizes are constants of the shader.
  if (!of_a_linear || !fits || width % kOctet != 0 || !has_fixed_shape(graph, image)) return noted;
  noted.image = image;
  noted.sizes = {u32(height), u32(width), u32(image.dim(2)), u32(image.dim(3)), u32(zeros)};
  return noted;
}

}  // namespace pumice::engine
