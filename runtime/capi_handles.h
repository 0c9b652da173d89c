// SPDX-License-Identifier: Apache-2.0
// Numbers for objects, so that a handle that is freed twice, used after freeing or invented is an error and no crash.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/model.h"

namespace pumice::engine {

// A handle is a slot and the slot's generation, which changes when the object goes. Zero is never one.
template <class T>
class Handles {
 public:
  explicit Handles(const char* what) : what_(what) {}

  uint64_t add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      slots_.push_back({});
      free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
    }
    const uint32_t slot = free_.back();
    slots_[slot].object = std::move(object);
    free_.pop_back();
    return uint64_t{slots_[slot].generation} << 32 | slot;
  }
  // Throws WrongState. The result keeps the object alive, also when another thread frees the handle.
  std::shared_ptr<T> get(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    return slot(handle).object;
  }
  std::shared_ptr<T> remove(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Slot& found = slot(handle);
    free_.push_back(static_cast<uint32_t>(handle));
    if (++found.generation == 0) found.generation = 1;
    return std::move(found.object);
  }

 private:
  struct Slot {
    uint32_t generation = 1;
    std::shared_ptr<T> object = nullptr;
  };
  Slot& slot(uint64_t handle) {
    const uint64_t index = handle & UINT32_MAX;
    if (index >= slots_.size() || slots_[index].generation != handle >> 32 || slots_[index].object == nullptr)
      fail(Code::WrongState, Stage::api, "", "this handle is no %s, or no longer: it was freed or never made", what_);
    return slots_[index];
  }

  const char* what_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

struct ModelEntry {
  std::shared_ptr<const Model> model;
  uint64_t timeout_ns;
};

struct SessionEntry {
  std::unique_ptr<Session> session;
};

// Never destroyed: at exit a driver may be gone before them.
inline Handles<ModelEntry>& models() {
  static auto& handles = *new Handles<ModelEntry>("model");
  return handles;
}
inline Handles<SessionEntry>& sessions() {
  static auto& handles = *new Handles<SessionEntry>("session");
  return handles;
}

}  // namespace pumice::engine
