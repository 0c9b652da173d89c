// SPDX-License-Identifier: Apache-2.0
// Values in textures (glsl/include/core/texture.glslh).
#pragma once

#include "ops/shared/args.h"

namespace pumice::engine {

// The texture of a value at its live shape: `count` texels that hold elements, rows of `columns` elements, `height` of
// them in a layer.
struct Texels {
  uint32_t count, columns, height;
};
Texels texels_of(const Tensor& value);

// The part of a Params struct that core/texture.glslh calls TEXEL_PARAMS, and an invocation for each texel of `out`.
template <class Params>
void over_texels(Launch& launch, Params& params, const Tensor& out) {
  const Texels texels = texels_of(out);
  launch.over(texels.count);
  params.texels = texels.count;
  params.columns = texels.columns;
  params.height = texels.height;
}

// Whether a call that reads x (and `other`, where given) and writes out, all of one storage, does that in textures:
// when one of them is to be a texture. If so, they become these.
bool take_textures(Graph& graph, Tensor& x, Tensor& out, Tensor* other = nullptr);

// The launch of a copy to the other storage; both have the same live shape.
void launch_copy(Launch& launch, const Tensor& out, const Tensor& in);
// Adds the node that copies a value to its other storage. For OperatorCallbacks.
void copy_storage(Graph& graph, Tensor out, Tensor in);

}  // namespace pumice::engine
