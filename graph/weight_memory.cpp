// SPDX-License-Identifier: Apache-2.0
#include "graph/weight_memory.h"

namespace pumice::engine {

WeightMemory::WeightMemory(std::shared_ptr<Device> device)
    : device_(std::move(device)), allocator_(device_->features().storage_alignment) {}

void WeightMemory::share() {
  lock_.emplace(device_);
}

const Allocation* WeightMemory::find(const std::string& key) {
  auto known = is_shared() ? lock_->find(key) : nullptr;
  if (known == nullptr) return nullptr;
  shared_.push_back(std::move(known));
  return &shared_.back()->allocation;
}

void WeightMemory::expect(uint64_t bytes) {
  if (!is_shared()) allocator_.expect(bytes);
}

WeightMemory::Forecast WeightMemory::forecast() const {
  return {allocator_.placement(), bytes(), is_shared() ? device_->features().storage_alignment : 0};
}

Allocation WeightMemory::allocate(uint64_t bytes, const char* what, const std::string& key) {
  if (!is_shared()) return allocator_.allocate(device_->memory(), bytes, what);
  const uint64_t alignment = device_->features().storage_alignment;
  Buffer buffer = device_->memory().buffer(padded(bytes, alignment), MemoryKind::device, what);
  const Allocation allocation = allocation_of(buffer, 0, bytes);
  add({device_, std::move(buffer), {}, allocation}, key);
  return allocation;
}

Allocation WeightMemory::allocate_image(const ImageShape& shape, const char* what, const std::string& key,
                                        Commands& commands) {
  Image image = device_->memory().image(shape, what);
  commands.discard(std::span(&image, 1));
  const Allocation allocation{{.view = image.view()}};
  if (is_shared()) {
    add({device_, {}, std::move(image), allocation}, key);
  } else {
    images_.push_back(std::move(image));
  }
  return allocation;
}

void WeightMemory::add(SharedWeight&& weight, const std::string& key) {
  made_.emplace_back(key, std::make_shared<SharedWeight>(std::move(weight)));
  shared_.push_back(made_.back().second);
}

void WeightMemory::finish() {
  for (const auto& [key, weight] : made_) lock_->add(key, weight);
  made_.clear();
  lock_.reset();
}

uint64_t WeightMemory::bytes() const {
  uint64_t bytes = allocator_.placement().bytes();
  for (const auto& weight : shared_) bytes += weight->buffer.bytes();
  return bytes;
}

uint64_t WeightMemory::texture_bytes() const {
  uint64_t bytes = 0;
  for (const Image& image : images_) bytes += image.bytes();
  for (const auto& weight : shared_) bytes += weight->image.bytes();
  return bytes;
}

}  // namespace pumice::engine
