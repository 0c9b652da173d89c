// SPDX-License-Identifier: Apache-2.0
// Share: the device memory of weights, of one program alone or shared with others on the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/shared_weights.h"
#include "graph/suballocator.h"
#include "vulkan/command.h"

namespace pumice::engine {

class WeightMemory {
 public:
  explicit WeightMemory(std::shared_ptr<Device> device);

  // From here on weights are shared with other programs; other loads on the device wait until finish().
  void share();
  bool is_shared() const { return lock_.has_value(); }

  // `key` tells how a weight is made and of which contents; it is used only where weights are shared.
  const Allocation* find(const std::string& key);  // what another program has on the device, or null
  void expect(uint64_t bytes);                     // announces allocate(), see Placement
  // What bytes() will be after further allocations. Nothing is allocated. Weights that another program has count as
  // well: they are part of what this one takes.
  class Forecast {
   public:
    Forecast(const Placement& placement, uint64_t bytes, uint64_t each_aligned)
        : placement_(placement), bytes_(bytes), each_aligned_(each_aligned) {}
    void add(uint64_t bytes) {
      bytes_ += each_aligned_ != 0 ? padded(bytes, each_aligned_) : placement_.place(bytes).new_buffer;
    }
    uint64_t bytes() const { return bytes_; }

   private:
    Placement placement_;
    uint64_t bytes_, each_aligned_;  // 0: placed with others, else each in a buffer of its own
  };
  Forecast forecast() const;
  Allocation allocate(uint64_t bytes, const char* what, const std::string& key);
  // `commands` gets the image into its layout.
  Allocation allocate_image(const ImageShape& shape, const char* what, const std::string& key, Commands& commands);

  // The weights are on the device: other programs may find them.
  void finish();

  uint64_t bytes() const;  // in buffers, shared ones too
  uint64_t texture_bytes() const;

 private:
  void add(SharedWeight&& weight, const std::string& key);

  std::shared_ptr<Device> device_;
  Suballocator allocator_;
  std::vector<Image> images_;
  std::vector<std::shared_ptr<const SharedWeight>> shared_;                        // instead of allocator_ and images_
  std::vector<std::pair<std::string, std::shared_ptr<const SharedWeight>>> made_;  // by their keys
  std::optional<SharedWeights> lock_;
};

}  // namespace pumice::engine
