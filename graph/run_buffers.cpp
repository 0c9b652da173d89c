// SPDX-License-Identifier: Apache-2.0
#include "graph/run_buffers.h"

#include <algorithm>
#include <cstring>

namespace pumice::engine {
namespace {

bool is_small(const Buffer& buffer, uint64_t bytes) {
  return bytes > 0 && (!buffer || buffer.bytes() < bytes);
}

// Takes what is beyond `bytes` from `left`.
void grow_one(Device& device, Buffer& buffer, uint64_t bytes, uint64_t& left, MemoryKind kind, const char* what) {
  const uint64_t old = buffer ? buffer.bytes() : 0;
  if (bytes <= old) return;
  // A quarter more than before, so that a length that grows by one in each run does not allocate in each run.
  const uint64_t roomy = std::min({old + old / 4, device.features().max_allocation_bytes, buffer_bytes(bytes) + left});
  const uint64_t wanted = std::max(bytes, roomy / 16 * 16);
  left -= buffer_bytes(wanted) - buffer_bytes(bytes);
  buffer = Buffer();
  buffer = device.memory().buffer(wanted, kind, what);
  // Memory of earlier uploads may come back here: what no run has written is not to be read as a kernel's words.
  if (kind == MemoryKind::download) std::memset(buffer.mapped(), 0, wanted);
}

}  // namespace

bool RunBuffers::must_grow(const Ports& ports, const Layout& layout) const {
  return is_small(arena, layout.plan.total) || is_small(upload, ports.upload_bytes) ||
         is_small(download, ports.download_bytes);
}

void RunBuffers::grow(Device& device, const Ports& ports, const Layout& layout, uint64_t left) {
  grow_one(device, arena, layout.plan.total, left, MemoryKind::device, "arena");
  grow_one(device, upload, ports.upload_bytes, left, kind_of_inputs(device.memory(), ports), "inputs");
  grow_one(device, download, ports.download_bytes, left, MemoryKind::download, "outputs");
}

}  // namespace pumice::engine
