// SPDX-License-Identifier: Apache-2.0
#include "vulkan/probe.h"

#include <algorithm>

#include "glsl/probe_fragments.h"
#include "vulkan/command.h"

namespace pumice::engine {

bool may_have_fragments(const Features& features) {
  const auto has = [&](const MatrixShape& shape) {
    return std::find(features.matrix_f16.begin(), features.matrix_f16.end(), shape) != features.matrix_f16.end();
  };
  return features.runs(glsl::probe_fragments::variant()) && features.subgroup_size == 32 && has({16, 16, 16}) &&
         has({16, 8, 16});
}

bool has_fragments(const std::shared_ptr<Device>& device) {
  constexpr uint32_t kLanes = 32, kRight = 0x600d;
  const Pipeline& pipeline = device->pipelines().get({&glsl::probe_fragments::variant(), {kLanes}, 0});
  const Buffer out = device->memory().buffer(kLanes * 4, MemoryKind::device, "probe");
  const Buffer seen = device->memory().buffer(kLanes * 4, MemoryKind::download, "probe");
  const Slice from{out.handle(), 0, out.bytes()};
  Commands commands(device);
  commands.begin();
  commands.dispatch(pipeline, {&from, 1}, {}, {1, 1, 1});
  commands.barrier();
  commands.copy(from, {seen.handle(), 0, seen.bytes()});
  commands.host_barrier();
  commands.end();
  device->run(commands);
  const auto* words = reinterpret_cast<const uint32_t*>(seen.mapped());
  return std::all_of(words, words + kLanes, [](uint32_t word) { return word == kRight; });
}

}  // namespace pumice::engine
