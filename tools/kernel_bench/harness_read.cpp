// SPDX-License-Identifier: Apache-2.0
// What a harness reads after a run: outputs, what kernels report, guards that were written over.
#include <cinttypes>
#include <cstring>

#include "glsl/bench_compare.h"
#include "graph/graph_impl.h"
#include "tools/kernel_bench/harness.h"

namespace pumice::engine::kernel_bench {

std::optional<HostReport> Harness::report() {
  if (!places_.contains(impl().status)) return std::nullopt;
  uint32_t words[4];
  const Slice status = slice(impl().status, 0);
  const Slice slices[] = {{status.buffer, status.offset, sizeof(words)}};
  std::memcpy(words, transfers_.read(slices).data(), sizeof(words));
  if (words[0] == 0) return std::nullopt;
  if (words[0] != 1)
    fail(Code::Internal, Stage::execute, "", "a kernel reports trouble in operator call %u", words[0] - 1);
  return HostReport{words[1], static_cast<int32_t>(words[2]), static_cast<int32_t>(words[3])};
}

Bytes Harness::read_output(size_t index) {
  const Slice output = slice(impl().outputs[index], 0);
  const Slice slices[] = {{output.buffer, output.offset, output_bytes(index)}};
  return transfers_.read(slices);
}

std::optional<uint32_t> Harness::first_other(uint32_t count) {
  constexpr uint32_t kLanes = 128, kNone = 0xffffffff;
  Device& device = *loaded_.device;
  const std::vector<uint32_t>& outputs = impl().outputs;
  const Buffer found = device.memory().buffer(4, MemoryKind::device, "number of a run");
  std::vector<Buffer> copies;
  std::vector<uint32_t> bytes;
  std::vector<Slice> now, before;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (output_bytes(i) == 0) continue;
    const Slice output = slice(outputs[i], 0);
    bytes.push_back(static_cast<uint32_t>(output_bytes(i)));
    now.push_back({output.buffer, output.offset, padded(bytes.back(), 4)});
    copies.push_back(device.memory().buffer(now.back().bytes, MemoryKind::device, "copy of an output"));
    before.push_back({copies.back().handle(), 0, now.back().bytes});
  }
  const Slice first{found.handle(), 0, 4};
  const Pipeline& pipeline = device.pipelines().get({&glsl::bench_compare::variant(), {kLanes}, 0});
  transfers_.run([&](Commands& commands) {
    commands.fill(first, kNone);
    for (size_t i = 0; i < now.size(); ++i) commands.copy(now[i], before[i]);
    for (uint32_t run = 0; run < count; ++run) {
      clear(commands, impl().status);
      commands.barrier();
      dispatch(commands, 0);
      commands.barrier();
      for (size_t i = 0; i < now.size(); ++i) {
        const glsl::bench_compare::Params params{bytes[i], run};
        const uint64_t groups = (now[i].bytes / 4 + kLanes - 1) / kLanes;
        const auto y = static_cast<uint32_t>((groups + 65534) / 65535);
        commands.dispatch(pipeline, std::vector{first, now[i], before[i]}, std::as_bytes(std::span(&params, 1)),
                          {static_cast<uint32_t>((groups + y - 1) / y), y, 1});
      }
    }
  });
  uint32_t run;
  std::memcpy(&run, transfers_.read({&first, 1}).data(), 4);
  return run == kNone ? std::nullopt : std::optional(run);
}

std::string Harness::damage(uint32_t word) {
  struct Band {
    const Place* place;
    uint64_t first, bytes;
  };
  std::vector<Band> bands;
  std::vector<Slice> slices;
  for (const auto& [tensor, place] : places_) {
    const uint64_t start = slice(tensor, 0).offset, end = start + place.bytes;
    for (const auto& [first, bytes] : {std::pair{uint64_t{0}, start}, std::pair{end, place.stride - place.bytes}}) {
      bands.push_back({&place, first, bytes / 4 * 4});
      slices.push_back({place.buffer.handle(), first, bytes / 4 * 4});
    }
  }
  const Bytes all = transfers_.read(slices);
  const std::byte* next = all.data();
  for (const Band& band : bands) {
    for (uint64_t at = 0; at < band.bytes; at += 4, next += 4) {
      uint32_t found;
      std::memcpy(&found, next, 4);
      if (found == word) continue;
      const int64_t where = static_cast<int64_t>(band.first + at) - static_cast<int64_t>(front());
      return format("byte %" PRId64 " of the %s (it has %" PRIu64 ") was written: %#x, not %#x", where,
                    band.place->name.c_str(), band.place->bytes, found, word);
    }
  }
  return textures_.damage();
}

}  // namespace pumice::engine::kernel_bench
