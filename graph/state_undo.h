// SPDX-License-Identifier: Apache-2.0
// States as they were before a run. A kernel may report an error, such as an index out of range, when others have
// updated states already, or a run may end between two of its submits; they are then set back.
#pragma once

#include <span>
#include <vector>

#include "graph/states.h"
#include "vulkan/command.h"

namespace pumice::engine {

class StateUndo {
 public:
  // At most so many bytes are kept, of the smallest states: counters and positions. A copy of a key/value cache in each
  // run would cost more than it is worth.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 20;

  StateUndo() = default;
  // `states`: those of the session, which must stay where they are; `infos`: of the same.
  StateUndo(Device& device, const std::vector<Buffer>& states, std::span<const StateInfo> infos,
            std::span<const std::unique_ptr<Graph>> graphs);
  // What it will allocate.
  static uint64_t bytes_of(std::span<const StateInfo> infos, std::span<const std::unique_ptr<Graph>> graphs);

  // Records the copies of what the method updates, with a barrier.
  void save(uint32_t method, Commands& commands) const;
  void restore(uint32_t method, Commands& commands) const;
  bool saves(uint32_t method) const { return !methods_[method].saved.empty(); }
  bool saves(uint32_t method, const Buffer& state) const;
  uint64_t bytes() const { return buffer_.bytes(); }
  // Whether the method updates any state.
  bool is_needed(uint32_t method) const { return saves(method) || !is_complete(method); }
  // Whether restore() sets back every state that the method updates.
  bool is_complete(uint32_t method) const { return methods_[method].complete; }

 private:
  struct Copy {
    Slice state, saved;
  };
  struct MethodStates {
    std::vector<Copy> saved;
    bool complete = true;
  };

  Buffer buffer_;
  std::vector<MethodStates> methods_;
};

}  // namespace pumice::engine
