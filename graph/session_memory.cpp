// SPDX-License-Identifier: Apache-2.0
// What a session allocates for its runs.
#include <algorithm>
#include <cstring>

#include "graph/execute.h"
#include "graph/need.h"

namespace pumice::engine {
namespace {

bool is_small(const Buffer& buffer, uint64_t bytes) {
  return bytes > 0 && (!buffer || buffer.bytes() < bytes);
}

}  // namespace

bool Session::must_grow(const Ports& ports, const Layout& layout) const {
  return is_small(arena_, layout.plan.total) || is_small(upload_, ports.upload_bytes) ||
         is_small(download_, ports.download_bytes);
}

template <class Memory>
uint64_t Session::bytes_of(std::vector<Memory> Encoding::* kept) const {
  uint64_t bytes = 0;
  for (const MethodState& method : methods_) {
    for (const auto& encoding : method.encodings) {
      for (const Memory& memory : (*encoding).*kept) bytes += memory.bytes();
    }
  }
  return bytes;
}

// With another recording. Where something must grow, those that there are go.
MemoryNeed Session::need_of(const Ports& ports, const Layout& layout, uint64_t merged) const {
  const bool grows = must_grow(ports, layout);
  const auto size = [](const Buffer& old, uint64_t bytes) { return std::max(old.bytes(), grown_bytes(bytes)); };
  MemoryNeed need{.weights = weights_->bytes(), .weight_textures = weights_->texture_bytes()};
  need.states = state_bytes(state_infos_);
  need.arena = size(arena_, layout.plan.total);
  need.io = words_.bytes() + undo_.bytes() + size(upload_, ports.upload_bytes) + size(download_, ports.download_bytes) +
            merged + (grows ? 0 : bytes_of(&Encoding::merged_memory));
  need.textures = value_texture_bytes(*device_, layout) + (grows ? 0 : bytes_of(&Encoding::images));
  return need;
}

// Grows what is too small. Recordings use the old buffers, so they are dropped first; old memory is freed before the
// new is allocated. Nothing is dropped where the new is beyond the budget.
void Session::make_room(const Ports& ports, const Layout& layout, uint64_t merged) {
  const bool grows = must_grow(ports, layout);
  if (!grows && layout.images.empty() && merged == 0) return;
  const MemoryNeed need = need_of(ports, layout, merged);
  require_memory(need, budget_);
  if (!grows) return;
  for (MethodState& method : methods_) method.encodings.clear();
  last_ = nullptr;
  uint64_t left = budget_.max_memory - need.running();
  grow(arena_, layout.plan.total, left, MemoryKind::device, "arena");
  grow(upload_, ports.upload_bytes, left, kind_of_inputs(device_->memory(), ports), "inputs");
  grow(download_, ports.download_bytes, left, MemoryKind::download, "outputs");
}

// Takes what is beyond `bytes` from `left`.
void Session::grow(Buffer& buffer, uint64_t bytes, uint64_t& left, MemoryKind kind, const char* what) {
  const uint64_t old = buffer ? buffer.bytes() : 0;
  if (bytes <= old) return;
  // A quarter more than before, so that a length that grows by one in each run does not allocate in each run.
  const uint64_t roomy =
      std::min({old + old / 4, device_->features().max_allocation_bytes, buffer_bytes(bytes) + left});
  const uint64_t wanted = std::max(bytes, roomy / 16 * 16);
  left -= buffer_bytes(wanted) - buffer_bytes(bytes);
  buffer = Buffer();
  buffer = device_->memory().buffer(wanted, kind, what);
  // Memory of earlier uploads may come back here: what no run has written is not to be read as a kernel's words.
  if (kind == MemoryKind::download) std::memset(buffer.mapped(), 0, wanted);
}

SessionMemory Session::memory() const {
  const Lock lock(*this);
  const auto size = [](const Buffer& buffer) { return buffer ? buffer.bytes() : 0; };
  SessionMemory memory{
      .weights = weights_->bytes(),
      .state = 0,
      .arena = size(arena_),
      .textures = weights_->texture_bytes(),
      .io = size(upload_) + size(download_) + size(words_) + undo_.bytes() + bytes_of(&Encoding::merged_memory)};
  for (const Buffer& state : states_) memory.state += size(state);
  memory.textures += bytes_of(&Encoding::images);
  return memory;
}

}  // namespace pumice::engine
