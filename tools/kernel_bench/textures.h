// SPDX-License-Identifier: Apache-2.0
// The textures of a harness: an image for every tensor and slot. With guards an image is one texel larger along each
// axis than the kernel needs. Lanes and texels without an element may have any value
// (glsl/include/core/texture.glslh), so they are filled with the pattern of the test, too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph_impl.h"
#include "vulkan/command.h"

namespace pumice::engine::kernel_bench {

class Textures {
 public:
  Textures(std::shared_ptr<Device> device, uint32_t slots, bool guards)
      : device_(std::move(device)), slots_(slots), guards_(guards) {}

  void add(uint32_t tensor, const TensorInfo& info, const std::string& name);
  bool has(uint32_t tensor) const { return all_.contains(tensor); }
  Slice slice(uint32_t tensor, uint32_t slot) const;
  // Records: every texel of activations becomes `word`; of a weight only the texels that `packed`, the engine's texture
  // of it, does not have.
  void fill(Commands& commands, uint32_t word) const;
  void copy_weight(Commands& commands, uint32_t tensor, Slice packed, uint32_t word) const;
  // Records the same for the lanes after the last element of each row, after the values are in the textures.
  void fill_tails(Commands& commands, uint32_t word) const;
  // Reads the guards of slot 0, for damage().
  void remember();
  // Describes where the guards have changed since; empty when nowhere.
  std::string damage();
  // For planted mistakes: overwrites a texture with its guards.
  void overwrite(uint32_t tensor, uint32_t word);
  uint64_t slot_bytes() const;

 private:
  struct Texture {
    DType dtype;
    ImageShape shape, whole;  // as the kernel sees it, and with guards
    uint32_t columns;         // elements in a row
    std::string name;
    std::vector<Image> images;   // by slot
    std::vector<uint32_t> bits;  // the texels of slot 0, four words each
  };
  void fill(Commands& commands, const Texture& texture, uint32_t slot, uint32_t word) const;
  std::vector<uint32_t> read(const Texture& texture) const;
  template <class Params>
  void dispatch(Commands& commands, const Shader& shader, const Params& params, std::vector<Slice> bindings,
                uint64_t texels) const;

  std::shared_ptr<Device> device_;
  const uint32_t slots_;
  const bool guards_;
  std::map<uint32_t, Texture> all_;
};

}  // namespace pumice::engine::kernel_bench
