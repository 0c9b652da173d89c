// SPDX-License-Identifier: Apache-2.0
// The textures of a harness: an image of its own for every tensor and slot, a texel larger along each axis than the
// kernel needs where there are guards. Lanes and texels that hold no element may be anything
// (glsl/include/core/texture.glslh), so they are poisoned as everything else is.
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
  // Into a recording: every texel of activations becomes `word`; of weights those that `packed`, the texture of the
  // product, does not fill.
  void fill(Commands& commands, uint32_t word) const;
  void copy_weight(Commands& commands, uint32_t tensor, Slice packed, uint32_t word) const;
  // Likewise, after values came to them: the lanes after the last elements of rows.
  void fill_tails(Commands& commands, uint32_t word) const;
  // Remembers what the guards of slot 0 are.
  void remember();
  // Where they are not that any more, as text; empty when they are whole.
  std::string damage();
  // For planted mistakes: overwrites the guards of a texture, and all else in it.
  void spoil(uint32_t tensor, uint32_t word);
  uint64_t slot_bytes() const;

 private:
  struct Texture {
    DType dtype;
    ImageShape shape, whole;  // as the kernel sees it, and with guards
    uint32_t columns;         // elements of a row
    std::string name;
    std::vector<Image> images;   // by slot
    std::vector<uint32_t> bits;  // of slot 0, four words a texel
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
