// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/same_bytes.h"

#include <cstring>
#include <vector>

#include "glsl/bench_compare.h"
#include "graph/suballocator.h"

namespace pumice::engine::kernel_bench {

std::optional<uint32_t> first_other(Device& device, Transfers& transfers, std::span<const Slice> outputs,
                                    uint32_t count, const std::function<void(Commands&)>& run) {
  constexpr uint32_t kLanes = 128, kNone = 0xffffffff;
  const Buffer found = device.memory().buffer(4, MemoryKind::device, "number of a run");
  std::vector<Buffer> copies;
  std::vector<Slice> now, before;
  for (const Slice& output : outputs) {
    now.push_back({output.buffer, output.offset, padded(output.bytes, 4)});
    copies.push_back(device.memory().buffer(now.back().bytes, MemoryKind::device, "copy of an output"));
    before.push_back({copies.back().handle(), 0, now.back().bytes});
  }
  const Slice first{found.handle(), 0, 4};
  const Pipeline& pipeline = device.pipelines().get({&glsl::bench_compare::variant(), {kLanes}, 0});
  transfers.run([&](Commands& commands) {
    commands.fill(first, kNone);
    for (size_t i = 0; i < now.size(); ++i) commands.copy(now[i], before[i]);
    for (uint32_t time = 0; time < count; ++time) {
      run(commands);
      commands.barrier();
      for (size_t i = 0; i < now.size(); ++i) {
        const glsl::bench_compare::Params params{static_cast<uint32_t>(outputs[i].bytes), time};
        const uint64_t groups = (now[i].bytes / 4 + kLanes - 1) / kLanes;
        const auto y = static_cast<uint32_t>((groups + 65534) / 65535);
        commands.dispatch(pipeline, std::vector{first, now[i], before[i]}, std::as_bytes(std::span(&params, 1)),
                          {static_cast<uint32_t>((groups + y - 1) / y), y, 1});
      }
    }
  });
  uint32_t number;
  std::memcpy(&number, transfers.read({&first, 1}).data(), sizeof(number));
  return number == kNone ? std::nullopt : std::optional(number);
}

}  // namespace pumice::engine::kernel_bench
