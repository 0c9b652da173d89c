// SPDX-License-Identifier: Apache-2.0
// The constants of a program on the device: uploaded once, packed once, shared by methods and sessions.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/block_allocator.h"
#include "graph/build.h"
#include "graph/shared.h"

namespace pumice::engine {

class Weights {
 public:
  // Brings what `graphs` (of one program, at any shapes) need. The program's file may go afterwards. With `external`
  // everything is shared with other programs on the device that have equal weights.
  Weights(std::shared_ptr<Device> device, const Program& program, const ExternalData& external,
          std::span<const std::unique_ptr<Graph>> graphs);

  const Part& constant(uint32_t index, DType dtype) const;
  const Part& packed(const std::string& key) const;
  uint64_t bytes() const;  // in buffers, shared ones too
  uint64_t texture_bytes() const;

 private:
  friend class Prepack;
  std::map<std::pair<uint32_t, DType>, Part> constants_;
  std::unordered_map<std::string, Part> packed_;
  BlockAllocator blocks_;
  std::vector<Image> images_;
  std::vector<std::shared_ptr<const SharedWeight>> shared_;  // instead of blocks and images
};

// The shape and dtype that each state has in the methods that use it. Throws BadShape or BadDtype where two disagree,
// or where the initial value does not fit.
struct StateInfo {
  bool used = false;
  DType dtype = DType::f32;
  Shape shape = {};
  uint64_t bytes = 0;  // on the device
};
std::vector<StateInfo> states(const Program& program, std::span<const std::unique_ptr<Graph>> graphs);

}  // namespace pumice::engine
