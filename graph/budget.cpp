// SPDX-License-Identifier: Apache-2.0
#include "graph/budget.h"

#include <algorithm>
#include <cinttypes>

#include "base/error.h"
#include "base/host_memory.h"

namespace pumice::engine {

Budget effective(const Budget& budget, const DeviceInfo& device) {
  Budget result = budget;
  if (result.max_seconds == 0) result.max_seconds = kMaxSeconds;
  if (result.max_memory == 0) {
    const bool on_host = device.kind == "cpu" || device.kind == "integrated";
    const uint64_t bytes = on_host ? std::min(device.heap_bytes, host_memory_bytes()) : device.heap_bytes;
    result.max_memory = bytes / 5 * 4;
  }
  return result;
}

std::string MemoryNeed::text() const {
  std::string list;
  const auto add = [&](const char* what, uint64_t bytes) {
    if (bytes > 0) list += format("%s%s %" PRIu64, list.empty() ? "" : ", ", what, bytes);
  };
  add("weights", weights);
  add("weights in textures", weight_textures);
  add("at most while they are packed", loading > weights + weight_textures ? loading : 0);
  add("states", states);
  add("values", arena);
  add("values in textures", textures);
  add("inputs and outputs", io);
  return list;
}

void require_memory(const MemoryNeed& need, const Budget& budget) {
  if (need.total() <= budget.max_memory) return;
  fail(Code::LimitExceeded, Stage::plan, "max_memory",
       "the file needs %" PRIu64 " bytes on the device (%s); the limit is %" PRIu64 " (max_memory)", need.total(),
       need.text().c_str(), budget.max_memory);
}

}  // namespace pumice::engine
