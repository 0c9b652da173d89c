// SPDX-License-Identifier: Apache-2.0
// Replaces every function of the Vulkan table: counts the calls, lets the chosen ones fail, and counts the objects that
// are alive.
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "test/vulkan/gpu.h"

#if defined(PUMICE_ADDRESS_SANITIZER)
#include <sanitizer/lsan_interface.h>
#endif

namespace pumice::engine::test {

struct LeaksAllowed {
#if defined(PUMICE_ADDRESS_SANITIZER)
  LeaksAllowed() { __lsan_disable(); }
  ~LeaksAllowed() { __lsan_enable(); }
#else
  LeaksAllowed() {}
#endif
};

struct Faults {
  // What fails: the call with this number (of those that return a VkResult), or calls of this function.
  size_t fail_call = ~size_t{0};
  std::string fail_function;
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  bool forever =
      false;  // of fail_function: every call, not only the first (for allocations always, because VMA tries again)
  bool from_then_on = false;  // all calls from fail_call on
  bool after = false;         // the driver does the work, and the call still returns an error
  // What has happened so far.
  size_t calls = 0;
  std::string failed;
  std::vector<std::string> names;          // of the functions, by the number of the call
  bool unknown = false;                    // a fence or a wait for one failed: nobody knows what the device still uses
  std::map<std::string, int> by_function;  // how often a function was the first to fail; reset() keeps it
  std::map<std::string, int> ledger;       // objects created minus destroyed, by kind
  std::mutex mutex;

  void reset() {
    const std::lock_guard lock(mutex);
    fail_call = ~size_t{0};
    fail_function.clear();
    forever = from_then_on = after = unknown = false;
    calls = 0;
    failed.clear();
    names.clear();
  }
  bool fires(const char* function) {
    const std::lock_guard lock(mutex);
    const size_t number = calls++;
    const bool waits_here = std::strcmp(function, "vkWaitForFences") == 0;
    names.push_back(function);
    if (result == VK_TIMEOUT && !waits_here) return false;  // a success code, which only waits have
    const bool named = fail_function == function && (failed.empty() || forever || fail_function == "vkAllocateMemory");
    const bool numbered = from_then_on ? number >= fail_call : number == fail_call;
    if (!numbered && !named) return false;
    unknown |= waits_here || std::strcmp(function, "vkCreateFence") == 0;
    if (failed.empty()) {
      failed = function;
      by_function[failed] += 1;
    }
    return true;
  }
  void count(std::string kind, int change) {
    const std::lock_guard lock(mutex);
    if (kind == "ComputePipelines") kind = "Pipeline";
    ledger[kind] += change;
  }
  std::map<std::string, int> alive() {
    const std::lock_guard lock(mutex);
    std::map<std::string, int> left;
    for (const auto& [kind, number] : ledger) {
      if (number != 0) left[kind] = number;
    }
    ledger.clear();
    return left;
  }
};

inline Faults& faults() {
  static Faults faults;
  return faults;
}

enum class Id {
#define PUMICE_ID(function) function,
  PUMICE_VK_GLOBAL(PUMICE_ID) PUMICE_VK_INSTANCE(PUMICE_ID) PUMICE_VK_OPTIONAL(PUMICE_ID) PUMICE_VK_DEVICE(PUMICE_ID)
#undef PUMICE_ID
};

// Splits a function's name into "Create", "Allocate", "Destroy" or "Free" and the kind of object.
inline std::string kind_after(const char* prefix, const std::string& function) {
  const std::string all = std::string("vk") + prefix;
  return function.compare(0, all.size(), all) == 0 ? function.substr(all.size()) : "";
}

template <Id id, class Pointer>
struct Thunk;

template <Id id, class R, class... A>
struct Thunk<id, R(VKAPI_PTR*)(A...)> {
  static inline R(VKAPI_PTR* real)(A...) = nullptr;
  static inline std::string name;

  static R VKAPI_CALL call(A... arguments) {
    if constexpr (std::is_same_v<R, VkResult>) {
      const bool fails = faults().fires(name.c_str());
      if (fails && !faults().after && !waits_after_loss()) return faults().result;
      VkResult result = real(arguments...);
      while (fails && waits_after_loss() && result == VK_NOT_READY) result = real(arguments...);
      if (result == VK_SUCCESS) {
        std::string kind = kind_after("Create", name);
        if (kind.empty() && name == "vkAllocateMemory") kind = "Memory";
        if (!kind.empty()) faults().count(kind, 1);
      }
      return fails ? faults().result : result;
    } else {
      std::string kind = kind_after("Destroy", name);
      if (kind.empty()) kind = kind_after("Free", name);
      if (!kind.empty() && handle(arguments...)) faults().count(kind, -1);
      return real(arguments...);
    }
  }
  // A lost device uses nothing any more. The driver under test is not lost, so a fence that reports the loss comes
  // first.
  static bool waits_after_loss() {
    return (id == Id::WaitForFences || id == Id::GetFenceStatus) && faults().result == VK_ERROR_DEVICE_LOST;
  }
  // Whether there is an object to destroy: the only handle of an instance or device, else the second argument.
  static bool handle(A... arguments) {
    const auto all = std::make_tuple(arguments...);
    constexpr size_t kIndex = sizeof...(A) >= 3 ? 1 : 0;
    if constexpr (std::is_pointer_v<std::tuple_element_t<kIndex, decltype(all)>>)
      return std::get<kIndex>(all) != nullptr;
    return false;
  }
};

template <Id id, class Pointer>
void install(VkFunction<Pointer>& function, const char* name) {
  using T = Thunk<id, Pointer>;
  if (!function || function.pointer == &T::call) return;
  T::real = function.pointer;
  T::name = name;
  function.pointer = &T::call;
}

inline void install_faults(Vk& vk) {
#define PUMICE_THUNK(function) install<Id::function>(vk.function, "vk" #function);
  PUMICE_VK_GLOBAL(PUMICE_THUNK)
  PUMICE_VK_INSTANCE(PUMICE_THUNK)
  PUMICE_VK_OPTIONAL(PUMICE_THUNK)
  PUMICE_VK_DEVICE(PUMICE_THUNK)
#undef PUMICE_THUNK
}

struct FaultHook {
  FaultHook() {
    // Keeps one instance: NVIDIA's driver fails when it is unloaded and loaded again many times.
    [[maybe_unused]] static const auto* pin = new std::shared_ptr<Instance>(get_instance());
    set_vulkan_hook(install_faults);
  }
  ~FaultHook() {
    faults().reset();
    set_vulkan_hook({});
    faults().alive();
  }
};

}  // namespace pumice::engine::test
