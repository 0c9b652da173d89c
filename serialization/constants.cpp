// SPDX-License-Identifier: Apache-2.0
#include "serialization/constants.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>

#include "base/checked.h"
#include "base/thread_pool.h"
#include "serialization/hash.h"
#include "serialization/header.h"

namespace pumice::engine {
namespace {

std::string path(size_t index, const char* field) {
  return format("constants[%zu]%s", index, field);
}

// Indices of the constants inside of the file, by offset and then by size.
std::vector<uint32_t> by_offset(const Program& program) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < program.constants.size(); i++) {
    const Constant& c = program.constants[i];
    if (c.external && c.offset != 0) {
      fail(Code::BadSchema, Stage::semantics, path(i, ".offset"), "got %" PRIu64 ", an external constant has 0",
           c.offset);
    }
    if (!c.external) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Constant &x = program.constants[a], &y = program.constants[b];
    return std::pair(x.offset, x.size) < std::pair(y.offset, y.size);
  });
  return order;
}

void check_segments(const Program& program, std::span<const uint32_t> order) {
  uint64_t end = 0;  // of the segments so far
  for (const uint32_t i : order) {
    const Constant& c = program.constants[i];
    if (c.offset % kAlignment != 0) {
      fail(Code::BadSchema, Stage::semantics, path(i, ".offset"), "got %" PRIu64 ", must be a multiple of %" PRIu64,
           c.offset, kAlignment);
    }
    const auto last = (CheckedU64(c.offset) + c.size).value();
    if (!last || *last > program.data.size()) {
      fail(Code::Truncated, Stage::semantics, path(i, ""),
           "'%s' has %" PRIu64 " bytes at %" PRIu64 ", the constants end at %zu", printable(c.key).c_str(), c.size,
           c.offset, program.data.size());
    }
    if (c.offset < end) {
      fail(Code::BadSchema, Stage::semantics, path(i, ".offset"),
           "got %" PRIu64 ", the constant before ends at %" PRIu64, c.offset, end);
    }
    if (c.offset - end >= kAlignment) {
      fail(Code::BadSchema, Stage::semantics, path(i, ".offset"),
           "got %" PRIu64 ", %" PRIu64 " bytes before it belong to no constant", c.offset, c.offset - end);
    }
    check_zero(program.data, end, c.offset, {nullptr, "padding between the constants"});
    end = *last;
  }
  if (end != program.data.size()) {
    fail(Code::BadSchema, Stage::semantics, "constants", "the last %" PRIu64 " bytes belong to no constant",
         program.data.size() - end);
  }
}

std::span<const std::byte> segment(const Program& program, const Constant& c) {
  return program.data.subspan(c.offset, c.size);
}

}  // namespace

// Hashing runs at memory speed, so a few threads are enough; fewer when the system refuses them.
void check_hashes(const Program& program) {
  const std::vector<uint32_t> order = by_offset(program);
  constexpr uint64_t kPerThread = uint64_t{8} << 20;
  std::atomic<size_t> bad{SIZE_MAX};
  ThreadPool pool(std::min<uint64_t>({program.data.size() / kPerThread, order.size(), 8}));
  pool.run(order.size(), 1, [&](size_t i, size_t) {
    const Constant& c = program.constants[order[i]];
    if (hash64(segment(program, c)) != c.hash) lower_to(bad, i);
  });
  if (bad == SIZE_MAX) return;
  const uint32_t index = order[bad];
  const Constant& c = program.constants[index];
  fail(Code::ChecksumMismatch, Stage::semantics, path(index, ""),
       "the hash of '%s' is %016" PRIx64 ", the file says %016" PRIx64 "; the file is damaged, copy or export it again",
       printable(c.key).c_str(), hash64(segment(program, c)), c.hash);
}

void check_constants(const Program& program) {
  check_segments(program, by_offset(program));
}

std::span<const std::byte> constant_bytes(const Program& program, uint32_t index, const ExternalData& external) {
  if (index >= program.constants.size()) {
    fail(Code::BadIndex, Stage::prepack, path(index, ""), "there are %zu constants", program.constants.size());
  }
  const Constant& c = program.constants[index];
  if (!c.external) return segment(program, c);
  const std::optional<std::span<const std::byte>> bytes = external ? external(c.key) : std::nullopt;
  const std::string key = printable(c.key);
  if (!bytes) {
    fail(Code::WeightsMismatch, Stage::prepack, path(index, ""),
         "the file expects the bytes of '%s' from outside, and none were handed over under that key", key.c_str());
  }
  if (bytes->size() != c.size) {
    fail(Code::WeightsMismatch, Stage::prepack, path(index, ".size"), "got %zu bytes for '%s', want %" PRIu64,
         bytes->size(), key.c_str(), c.size);
  }
  if (const uint64_t hash = hash64(*bytes); hash != c.hash) {
    fail(Code::WeightsMismatch, Stage::prepack, path(index, ".hash"),
         "the bytes for '%s' have hash %016" PRIx64 ", want %016" PRIx64, key.c_str(), hash, c.hash);
  }
  return *bytes;
}

}  // namespace pumice::engine
