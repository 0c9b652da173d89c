// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/textures.h"

#include <algorithm>
#include <cstring>

#include "glsl/bench_texture.h"
#include "glsl/bench_weight.h"
#include "graph/image_shape.h"

namespace pumice::engine::kernel_bench {
namespace {

using glsl::bench_texture::DOES;

uint64_t texels(const ImageShape& shape) {
  return uint64_t{shape.width} * shape.height * std::max(shape.depth, 1u);
}

// One texel more along each axis, up to the limit of the device. The rows of a weight have a fixed length.
ImageShape with_guards(ImageShape shape, const Features& features) {
  const bool flat = shape.depth == 0;
  const uint32_t limit = flat ? features.max_image_2d : features.max_image_3d;
  const auto more = [](uint32_t size, uint32_t most) { return size + (size < most); };
  shape.width = more(shape.width, flat ? std::min(limit, kTexelsInARow) : limit);
  shape.height = more(shape.height, limit);
  if (!flat) shape.depth = more(shape.depth, limit);
  return shape;
}

bool is_guard(const ImageShape& shape, const ImageShape& whole, uint64_t texel) {
  const uint64_t row = texel / whole.width;
  return texel % whole.width >= shape.width || row % whole.height >= shape.height || row / whole.height >= shape.depth;
}

}  // namespace

void Textures::add(uint32_t tensor, const TensorInfo& info, const std::string& name) {
  if (has(tensor)) return;
  Texture& texture = all_[tensor];
  texture.dtype = info.dtype;
  texture.shape = image_shape(info);
  texture.whole = guards_ ? with_guards(texture.shape, device_->features()) : texture.shape;
  texture.columns = info.shape.empty() ? 1 : static_cast<uint32_t>(info.shape.back());
  texture.name = name;
  for (uint32_t slot = 0; slot < slots_; ++slot)
    texture.images.push_back(device_->memory().image(texture.whole, name.c_str()));
  Commands commands(device_);
  commands.begin();
  commands.discard(texture.images);
  commands.end();
  device_->run(commands);
}

Slice Textures::slice(uint32_t tensor, uint32_t slot) const {
  return {.view = all_.at(tensor).images[slot].view()};
}

template <class Params>
void Textures::dispatch(Commands& commands, const Shader& shader, const Params& params, std::vector<Slice> bindings,
                        uint64_t texels) const {
  constexpr uint32_t kLanes = 128;
  const uint64_t groups = (texels + kLanes - 1) / kLanes;
  const uint32_t most = device_->features().max_groups[0];
  const auto y = static_cast<uint32_t>((groups + most - 1) / most);
  commands.dispatch(device_->pipelines().get({&shader, {kLanes}, 0}), bindings, std::as_bytes(std::span(&params, 1)),
                    {static_cast<uint32_t>((groups + y - 1) / y), y, 1});
}

void Textures::fill(Commands& commands, const Texture& texture, uint32_t slot, uint32_t word) const {
  const ImageShape& all = texture.whole;
  const glsl::bench_texture::Params params{all.width, all.height, all.depth, word, 0, 0};
  dispatch(commands, glsl::bench_texture::variant(glsl::bench_texture::dtype(texture.dtype), DOES::fill), params,
           {{.view = texture.images[slot].view()}}, texels(all));
}

void Textures::fill(Commands& commands, uint32_t word) const {
  for (const auto& [tensor, texture] : all_) {
    for (uint32_t slot = 0; slot < slots_ && texture.shape.depth != 0; ++slot) fill(commands, texture, slot, word);
  }
}

void Textures::copy_weight(Commands& commands, uint32_t tensor, Slice packed, uint32_t word) const {
  const Texture& texture = all_.at(tensor);
  const ImageShape& all = texture.whole;
  const glsl::bench_weight::Params params{all.width, all.height, texture.columns / 4, word};
  for (const Image& image : texture.images)
    dispatch(commands, glsl::bench_weight::variant(), params, {{.view = image.view()}, packed}, texels(all));
}

void Textures::fill_tails(Commands& commands, uint32_t word) const {
  for (const auto& [tensor, texture] : all_) {
    const ImageShape& all = texture.whole;
    const uint32_t live = texture.columns % 4;
    if (texture.shape.depth == 0 || live == 0) continue;
    const glsl::bench_texture::Params params{all.width, all.height, all.depth, word, texture.shape.width - 1, live};
    for (const Image& image : texture.images)
      dispatch(commands, glsl::bench_texture::variant(glsl::bench_texture::dtype(texture.dtype), DOES::tail), params,
               {{.view = image.view()}}, texels(all));
  }
}

std::vector<uint32_t> Textures::read(const Texture& texture) const {
  const ImageShape& all = texture.whole;
  const uint64_t bytes = texels(all) * 16;
  const Buffer bits = device_->memory().buffer(bytes, MemoryKind::device, "bits of a texture");
  const Buffer down = device_->memory().buffer(bytes, MemoryKind::download, "bits of a texture");
  const Slice from{bits.handle(), 0, bytes};
  Commands commands(device_);
  commands.begin();
  dispatch(commands, glsl::bench_texture::variant(glsl::bench_texture::dtype(texture.dtype), DOES::bits),
           glsl::bench_texture::Params{all.width, all.height, all.depth, 0, 0, 0},
           {from, {.view = texture.images[0].view()}}, texels(all));
  commands.barrier();
  commands.copy(from, {down.handle(), 0, bytes});
  commands.host_barrier();
  commands.end();
  device_->run(commands);
  std::vector<uint32_t> words(bytes / 4);
  std::memcpy(words.data(), down.mapped(), bytes);
  return words;
}

void Textures::remember() {
  for (auto& [tensor, texture] : all_) {
    if (texture.shape.depth != 0) texture.bits = read(texture);
  }
}

std::string Textures::damage() {
  for (const auto& [tensor, texture] : all_) {
    if (texture.shape.depth == 0) continue;  // kernels do not write weights
    const std::vector<uint32_t> now = read(texture);
    const ImageShape& all = texture.whole;
    for (size_t i = 0; i < now.size(); ++i) {
      const uint64_t texel = i / 4, row = texel / all.width;
      if (now[i] == texture.bits[i] || !is_guard(texture.shape, all, texel)) continue;
      return format("texel %u, %u, %u of the texture of the %s (it has %u x %u x %u) was written: %#x, not %#x",
                    static_cast<uint32_t>(texel % all.width), static_cast<uint32_t>(row % all.height),
                    static_cast<uint32_t>(row / all.height), texture.name.c_str(), texture.shape.width,
                    texture.shape.height, texture.shape.depth, now[i], texture.bits[i]);
    }
  }
  return "";
}

void Textures::overwrite(uint32_t tensor, uint32_t word) {
  Commands commands(device_);
  commands.begin();
  fill(commands, all_.at(tensor), 0, word);
  commands.end();
  device_->run(commands);
}

uint64_t Textures::slot_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [tensor, texture] : all_) bytes += texel_bytes(texture.whole);
  return bytes;
}

}  // namespace pumice::engine::kernel_bench
