// SPDX-License-Identifier: Apache-2.0
// Weights that programs on a device share, as long as any of them is loaded: methods and partitions of an ExecuTorch
// program, or the same program twice.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "graph/block_allocator.h"

namespace pumice::engine {

struct SharedWeight {
  std::shared_ptr<Device> device;
  Buffer buffer;  // or
  Image image;
  Part part;
};

// A load that looks for what is there and then adds what it made; others wait meanwhile, so that nothing is made twice.
// Keys say how the weight was made and of which contents.
class SharedWeights {
 public:
  explicit SharedWeights(std::shared_ptr<Device> device);
  std::shared_ptr<const SharedWeight> find(const std::string& key) const;               // null: make it
  void add(const std::string& key, const std::shared_ptr<const SharedWeight>& weight);  // is on the device by now

 private:
  std::shared_ptr<Device> device_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace pumice::engine
