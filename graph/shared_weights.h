// SPDX-License-Identifier: Apache-2.0
// Weights that programs on a device share, as long as any of them is loaded: methods and partitions of an ExecuTorch
// program, or the same program twice.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "graph/suballocator.h"
#include "vulkan/device.h"

namespace pumice::engine {

struct SharedWeight {
  std::shared_ptr<Device> device;
  Buffer buffer;  // either this
  Image image;    // or this
  Allocation allocation;
};

// One load that uses shared weights. Other loads wait while it lives, so that no weight is made twice.
class SharedWeights {
 public:
  explicit SharedWeights(std::shared_ptr<Device> device);
  // `key` tells how the weight is made and of which contents. Null: there is none, make it.
  std::shared_ptr<const SharedWeight> find(const std::string& key) const;
  void add(const std::string& key, const std::shared_ptr<const SharedWeight>& weight);  // it is on the device now

 private:
  std::shared_ptr<Device> device_;
  std::unique_lock<std::recursive_mutex> lock_;  // a load that begins again holds it already
};

}  // namespace pumice::engine
