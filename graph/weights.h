// SPDX-License-Identifier: Apache-2.0
// The constants of a program on the device: uploaded once, packed once, shared by methods and sessions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "graph/prepack.h"
#include "graph/weight_memory.h"

namespace pumice::engine {

class Weights {
 public:
  // Uploads and packs what `graphs` (of one program, at any shapes) need. The bytes of the file are not used
  // afterwards. With `external`, everything is shared with other programs on the device that have equal weights, which
  // are waited for; unless `alone`.
  // `allow` gets what this will allocate before anything is allocated. It throws where that is too much, and returns
  // false where nothing is to be allocated: the object is then of no use. Throws Timeout between two steps.
  using Allow = std::function<bool(const MemoryNeed& weights)>;
  Weights(const std::shared_ptr<Device>& device, const Program& program, const ExternalData& external,
          std::span<const std::unique_ptr<Graph>> graphs, const Allow& allow = {}, const Deadline& deadline = {},
          bool alone = false);

  const Allocation& constant(uint32_t index, DType dtype) const;
  const Allocation& packed(const std::string& key) const;  // PackedConstant::key
  uint64_t bytes() const { return memory_.bytes(); }       // in buffers, shared ones too
  uint64_t texture_bytes() const { return memory_.texture_bytes(); }

 private:
  WeightMemory memory_;
  WeightTable table_;
};

}  // namespace pumice::engine
