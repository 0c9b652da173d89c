// SPDX-License-Identifier: Apache-2.0
#include "graph/image_shape.h"

#include <algorithm>

namespace pumice::engine {
namespace {

ImageFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ImageFormat::rgba32f;
    case DType::f16:
      return ImageFormat::rgba16f;
    case DType::i32:
    case DType::i64:
      return ImageFormat::rgba32i;
    case DType::i8:
      return ImageFormat::rgba8i;
    case DType::u8:
    case DType::boolean:
      return ImageFormat::rgba8u;
    case DType::i4:
      break;
  }
  fail(Code::Internal, Stage::plan, "", "a texture of %s", name(dtype));
}

uint64_t bytes_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::rgba32f:
    case ImageFormat::rgba32i:
    case ImageFormat::rgba32u:
      return 16;
    case ImageFormat::rgba16f:
      return 8;
    case ImageFormat::rgba8i:
    case ImageFormat::rgba8u:
      return 4;
  }
  return 0;
}

uint32_t texels(int64_t count) {
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 1, UINT32_MAX));
}

}  // namespace

ImageShape image_shape(const TensorInfo& texture) {
  const Shape& shape = texture.shape;
  if (texture.storage == StorageType::texture2d) {
    const int64_t vectors = shape[0] / 4;
    return {ImageFormat::rgba32u, texels(std::min<int64_t>(vectors, kTexelsInARow)),
            texels((vectors + kTexelsInARow - 1) / kTexelsInARow), 0};
  }
  // Without elements it is never read or written, and its other sizes may be any.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return {format_of(texture.dtype), 1, 1, 1};
  const size_t rank = shape.size();
  int64_t depth = 1;  // a tensor has at most 2^31 elements
  for (size_t d = 0; d + 2 < rank; ++d) depth *= shape[d];
  return {format_of(texture.dtype), texels(rank < 1 ? 1 : (shape[rank - 1] + 3) / 4),
          texels(rank < 2 ? 1 : shape[rank - 2]), texels(depth)};
}

bool device_takes(const Features& features, const ImageShape& image) {
  const uint32_t limit = image.depth == 0 ? features.max_image_2d : features.max_image_3d;
  return std::max({image.width, image.height, image.depth}) <= limit &&
         (features.image_formats & 1u << static_cast<uint32_t>(image.format)) != 0;
}

uint64_t texel_bytes(const ImageShape& image) {
  return bytes_of(image.format) * image.width * image.height * std::max<uint64_t>(image.depth, 1);
}

}  // namespace pumice::engine
