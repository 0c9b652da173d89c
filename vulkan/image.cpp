// SPDX-License-Identifier: Apache-2.0
#include "vulkan/image.h"

#include "vulkan/allocator.h"
#include "vulkan/memory.h"

namespace pumice::engine {

struct Image::Impl {
  std::shared_ptr<Core> core;
  VkImage image = VK_NULL_HANDLE;
  VkImageView view = VK_NULL_HANDLE;
  VmaAllocation allocation = nullptr;
  uint64_t bytes = 0;

  ~Impl() {
    if (core == nullptr || core->must_leak()) return;
    core->vk.DestroyImageView(core->device, view, nullptr);
    vmaDestroyImage(core->allocator, image, allocation);
    core->allocated[static_cast<size_t>(MemoryKind::device)] -= bytes;
  }
};

namespace {

VkImageCreateInfo create_info(const ImageShape& shape) {
  const bool flat = shape.depth == 0;
  VkImageCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  info.imageType = flat ? VK_IMAGE_TYPE_2D : VK_IMAGE_TYPE_3D;
  info.format = vulkan_format(shape.format);
  info.extent = {shape.width, shape.height, flat ? 1 : shape.depth};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.tiling = VK_IMAGE_TILING_OPTIMAL;
  info.usage = VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_SAMPLED_BIT;
  info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
  return info;
}

}  // namespace

// By an image without memory, which takes none.
uint64_t image_bytes(const Core& core, const ImageShape& shape) {
  const VkImageCreateInfo info = create_info(shape);
  VkImage image = VK_NULL_HANDLE;
  VK(core.vk, Stage::plan, "texture", CreateImage, core.device, &info, nullptr, &image);
  VkMemoryRequirements needed{};
  core.vk.GetImageMemoryRequirements(core.device, image, &needed);
  core.vk.DestroyImage(core.device, image, nullptr);
  return needed.size;
}

Image::Image(const std::shared_ptr<Core>& shared_core, const ImageShape& shape, const char* what) {
  Core& core = *shared_core;
  const VkImageCreateInfo info = create_info(shape);
  VmaAllocationCreateInfo allocation{};
  allocation.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  auto impl = std::make_unique<Image::Impl>();
  VmaAllocationInfo memory_info{};
  const VkResult result =
      vmaCreateImage(core.allocator, &info, &allocation, &impl->image, &impl->allocation, &memory_info);
  if (result != VK_SUCCESS)
    refuse_memory(core, result, "vmaCreateImage", what,
                  format("%s, a texture of %u x %u x %u texels", what, shape.width, shape.height, shape.depth));
  impl->core = shared_core;
  impl->bytes = memory_info.size;
  core.count(static_cast<size_t>(MemoryKind::device), impl->bytes);
  VkImageViewCreateInfo view{};
  view.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
  view.image = impl->image;
  view.viewType = shape.depth == 0 ? VK_IMAGE_VIEW_TYPE_2D : VK_IMAGE_VIEW_TYPE_3D;
  view.format = info.format;
  view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  VK(core.vk, Stage::device, what, CreateImageView, core.device, &view, nullptr, &impl->view);
  impl_ = std::move(impl);
}

Image::Image() = default;
Image::Image(Image&&) noexcept = default;
Image& Image::operator=(Image&&) noexcept = default;
Image::~Image() = default;

VkImage Image::handle() const {
  return impl_ ? impl_->image : VK_NULL_HANDLE;
}
VkImageView Image::view() const {
  return impl_ ? impl_->view : VK_NULL_HANDLE;
}
uint64_t Image::bytes() const {
  return impl_ ? impl_->bytes : 0;
}

}  // namespace pumice::engine
