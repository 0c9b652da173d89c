// SPDX-License-Identifier: Apache-2.0
#include "vulkan/upload.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/thread_pool.h"
#include "vulkan/command.h"
#include "vulkan/queue.h"

namespace pumice::engine {
namespace {

constexpr size_t kThreads = 8;            // more do not help: the bus is full
constexpr size_t kPieceBytes = 1u << 20;  // of one thread at a time

}  // namespace

struct Uploader::Impl {
  struct Chunk {
    Chunk(const std::shared_ptr<Device>& device, uint64_t bytes)
        : staging(device->memory().buffer(bytes, MemoryKind::upload, "upload ring")), commands(device) {}
    Buffer staging;
    Commands commands;  // destroyed first, and waits for its pending submit
    uint64_t used = 0;
    bool recording = false;
  };

  Impl(std::shared_ptr<Device> the_device, uint64_t bytes, uint32_t count)
      : device(std::move(the_device)),
        core(device->core()),
        chunk_bytes(std::max<uint64_t>(bytes, 4096)),
        max_chunks(std::max(count, 1u)) {}

  Chunk& recording_chunk();
  void submit();
  std::byte* mapped(const Slice& target);
  void convert(const Conversion& conversion, std::byte* out, const std::byte* in, size_t count);
  void put(std::span<const std::byte> source, Slice target, const Conversion& conversion);

  std::shared_ptr<Device> device;
  Core& core;
  uint64_t chunk_bytes;
  const size_t max_chunks;
  std::vector<std::unique_ptr<Chunk>> chunks;  // made as they are needed
  size_t current = 0;
  ThreadPool pool{kThreads};
};

// The current chunk, ready to record into; waits until the device is done with it.
Uploader::Impl::Chunk& Uploader::Impl::recording_chunk() {
  if (current == chunks.size()) chunks.push_back(std::make_unique<Chunk>(device, chunk_bytes));
  Chunk& chunk = *chunks[current];
  if (!chunk.recording) {
    device->queue().wait(chunk.commands.submission());
    chunk.commands.begin();
    chunk.used = 0;
    chunk.recording = true;
  }
  return chunk;
}

void Uploader::Impl::submit() {
  if (current >= chunks.size() || !chunks[current]->recording) return;
  Chunk& chunk = *chunks[current];
  chunk.recording = false;
  chunk.commands.end();
  device->queue().submit(chunk.commands.submission());
  current = (current + 1) % max_chunks;
}

std::byte* Uploader::Impl::mapped(const Slice& target) {
  if (!core.unified) return nullptr;
  std::lock_guard lock(core.mapped_mutex);
  const auto found = core.mapped.find(target.buffer);
  return found == core.mapped.end() ? nullptr : found->second + target.offset;
}

void Uploader::Impl::convert(const Conversion& conversion, std::byte* out, const std::byte* in, size_t count) {
  const size_t piece = std::max<size_t>(kPieceBytes / std::max(conversion.in_bytes, conversion.out_bytes), 1);
  pool.run(count, piece, [&](size_t first, size_t n) {
    conversion.function(out + first * conversion.out_bytes, in + first * conversion.in_bytes, n);
  });
}

void Uploader::Impl::put(std::span<const std::byte> source, Slice target, const Conversion& conversion) {
  size_t count = source.size() / conversion.in_bytes;
  if (source.size() % conversion.in_bytes != 0 || count > target.bytes / conversion.out_bytes) {
    fail(Code::Internal, Stage::prepack, "upload",
         "%zu bytes in elements of %u do not go into %llu bytes in elements of %u", source.size(), conversion.in_bytes,
         static_cast<unsigned long long>(target.bytes), conversion.out_bytes);
  }
  const std::byte* in = source.data();
  if (std::byte* out = mapped(target)) return convert(conversion, out, in, count);
  uint64_t offset = target.offset;
  while (count > 0) {
    Chunk& chunk = recording_chunk();
    const size_t fits = static_cast<size_t>((chunk_bytes - chunk.used) / conversion.out_bytes);
    if (fits == 0) {
      submit();
      continue;
    }
    const size_t now = std::min(count, fits);
    const uint64_t bytes = uint64_t{now} * conversion.out_bytes;
    convert(conversion, chunk.staging.mapped() + chunk.used, in, now);
    chunk.commands.copy({chunk.staging.handle(), chunk.used, bytes}, {target.buffer, offset, bytes});
    chunk.used = std::min((chunk.used + bytes + 15) / 16 * 16, chunk_bytes);
    in += now * conversion.in_bytes;
    offset += bytes;
    count -= now;
    if (chunk.used == chunk_bytes) submit();
  }
}

Uploader::Uploader(std::shared_ptr<Device> device, uint64_t chunk_bytes, uint32_t chunks)
    : impl_(std::make_unique<Impl>(std::move(device), chunk_bytes, chunks)) {}
Uploader::~Uploader() = default;

void Uploader::expect(uint64_t bytes) {
  constexpr uint64_t kLeast = 64 << 10;
  impl_->chunk_bytes = std::min(impl_->chunk_bytes, std::max((bytes + 15) / 16 * 16, kLeast));
}

void Uploader::put(std::span<const std::byte> source, Slice target) {
  static const Conversion kPlain{
      1, 1, [](std::byte* out, const std::byte* in, size_t count) { std::memcpy(out, in, count); }};
  impl_->put(source, target, kPlain);
}

void Uploader::put(std::span<const std::byte> source, Slice target, const Conversion& convert) {
  impl_->put(source, target, convert);
}

void Uploader::fill_zero(Slice target) {
  if (target.bytes == 0) return;
  if (std::byte* out = impl_->mapped(target)) {
    std::memset(out, 0, target.bytes);
    return;
  }
  Impl::Chunk& chunk = impl_->recording_chunk();
  chunk.commands.barrier();  // puts before and after it may write the same bytes
  chunk.commands.fill(target, 0);
  chunk.commands.barrier();
}

void Uploader::submit() {
  impl_->submit();
}

void Uploader::wait() noexcept {
  for (const auto& chunk : impl_->chunks) {
    try {
      impl_->device->queue().wait(chunk->commands.submission());
    } catch (const std::exception& error) {
      log(LogLevel::debug, "upload: %s", error.what());
    }
  }
}

void Uploader::flush() {
  impl_->submit();
  for (const auto& chunk : impl_->chunks) impl_->device->queue().wait(chunk->commands.submission());
}

}  // namespace pumice::engine
