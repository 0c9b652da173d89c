// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/transfers.h"

#include <algorithm>
#include <bit>

namespace pumice::engine::kernel_bench {

void Transfers::run(const std::function<void(Commands&)>& record) {
  commands_.begin();
  record(commands_);
  commands_.end();
  device_->run(commands_);
}

const Buffer& Transfers::at_least(uint64_t bytes, MemoryKind kind, Buffer& buffer) {
  if (buffer.bytes() < bytes) {
    buffer = Buffer();
    buffer =
        device_->memory().buffer(std::bit_ceil(std::max<uint64_t>(bytes, 1 << 20)), kind, "copies of kernel_bench");
  }
  return buffer;
}

Bytes Transfers::read(std::span<const Slice> slices) {
  uint64_t bytes = 0;
  for (const Slice& slice : slices) bytes += slice.bytes;
  const Buffer& down = download(bytes);
  run([&](Commands& commands) {
    uint64_t at = 0;
    for (const Slice& slice : slices) {
      if (slice.bytes != 0) commands.copy(slice, {down.handle(), at, slice.bytes});
      at += slice.bytes;
    }
    commands.host_barrier();
  });
  return Bytes(down.mapped(), down.mapped() + bytes);
}

}  // namespace pumice::engine::kernel_bench
