// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/textures.h"

#include "glsl/texture_copy.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

Texels texels_of(const Tensor& value) {
  const int64_t columns = value.rank() == 0 ? 1 : value.dim(-1);
  const int64_t rows = columns == 0 ? 0 : value.numel() / columns;
  return {u32(rows * ((columns + 3) / 4)), u32(columns), value.rank() < 2 ? 1 : u32(value.dim(-2))};
}

bool take_textures(Graph& graph, Tensor& x, Tensor& out, Tensor* other) {
  if (other != nullptr && !*other) other = nullptr;
  if (!graph.in_texture(x) && !graph.in_texture(out) && (other == nullptr || !graph.in_texture(*other))) return false;
  if (other != nullptr) *other = graph.texture(*other);
  x = graph.texture(x);
  out = graph.texture_out(out);
  return true;
}

void launch_copy(Launch& launch, const Tensor& out, const Tensor& in) {
  using namespace glsl::texture_copy;
  const Texels texels = texels_of(in);
  const bool to_texture = out.storage() == StorageType::texture3d;
  launch.over(to_texture ? texels.count : vec4_groups(in));
  launch.params(Params{to_texture ? texels.count : u32(in.numel()), texels.columns, texels.height});
  launch.shader = &variant(glsl::texture_copy::dtype(in.dtype()), to_texture ? TO::texture3d : TO::buffer);
}

void copy_storage(Graph& graph, Tensor out, Tensor in) {
  graph.dispatch({out}, {in}, [=](Launch& launch) {
    out.resize(in.shape());
    launch_copy(launch, out, in);
  });
}

}  // namespace pumice::engine
