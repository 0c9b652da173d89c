// SPDX-License-Identifier: Apache-2.0
#include "vulkan/probe.h"

#include <algorithm>

#include "glsl/probe_fragments.h"
#include "glsl/probe_fragments_int8.h"
#include "vulkan/command.h"

namespace pumice::engine {

static constexpr uint32_t kLanes = 32;

static const Shader& probe(Feature feature) {
  return feature == Feature::fragments ? glsl::probe_fragments::variant() : glsl::probe_fragments_int8::variant();
}

bool may_have_fragments(const Features& features, Feature feature) {
  const auto has = [](const MatrixShapes& shapes, const MatrixShape& shape) {
    return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
  };
  const bool shapes = feature == Feature::fragments
                          ? has(features.matrix_f16, {16, 16, 16}) && has(features.matrix_f16, {16, 8, 16})
                          : has(features.matrix_s8, {16, 8, 32});
  return shapes && features.runs(probe(feature)) && features.subgroup_size == 32;
}

PipelineKey probe_pipeline(Feature feature) {
  return {&probe(feature), {kLanes}, 0};
}

bool has_fragments(const std::shared_ptr<Device>& device, Feature feature) {
  constexpr uint32_t kRight = 0x600d;
  const Pipeline& pipeline = device->pipelines().get(probe_pipeline(feature));
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
