// SPDX-License-Identifier: Apache-2.0
// Images, always in device memory and in the layout GENERAL.
#pragma once

#include <cstdint>
#include <memory>

#include "vulkan/features.h"

typedef struct VkImage_T* VkImage;
typedef struct VkImageView_T* VkImageView;

namespace pumice::engine {

struct Core;  // vulkan/core.h

// depth 0: a 2D image. Each size is within Features::max_image_2d or max_image_3d.
struct ImageShape {
  ImageFormat format = ImageFormat::rgba32f;
  uint32_t width = 1, height = 1, depth = 0;
  bool operator==(const ImageShape&) const = default;
};

// An image that kernels read and write; it has no contents until Commands::discard. Move only; frees itself.
class Image {
 public:
  Image();
  Image(Image&&) noexcept;
  Image& operator=(Image&&) noexcept;
  ~Image();
  VkImage handle() const;
  VkImageView view() const;
  uint64_t bytes() const;

  // For Memory::image.
  Image(const std::shared_ptr<Core>& core, const ImageShape& shape, const char* what);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For Memory::image_bytes.
uint64_t image_bytes(const Core& core, const ImageShape& shape);

}  // namespace pumice::engine
