// SPDX-License-Identifier: Apache-2.0
#include "graph/encode.h"

#include <algorithm>
#include <cinttypes>

namespace pumice::engine {
namespace {

Port port(const Graph::Impl& graph, uint32_t tensor) {
  const TensorInfo& info = graph.tensors[tensor];
  const uint64_t bytes = graph.bytes(tensor);
  return {.tensor = tensor,
          .dtype = info.dtype,
          .shape = info.shape,
          .count = bytes / device_bytes(info.dtype),
          .bytes = bytes,
          .offset = 0};
}

Range range(const Graph::Impl& graph, const Layout& layout, uint32_t tensor) {
  const TensorInfo& root = graph.tensors[layout.storage[tensor]];
  const uint64_t bytes =
      graph.bytes(tensor) == 0 ? 0 : layout.bytes[tensor];  // nothing is written to an empty one, or read
  const uint32_t content = graph.view_root(tensor);
  if (root.storage == StorageClass::texture3d)
    return {kFirstImage + layout.image[layout.storage[tensor]], 0, bytes, content};
  switch (root.home) {
    case Home::arena:
      return {kArena, layout.offset[tensor], layout.offset[tensor] + bytes, content};
    case Home::state:
      return {kFirstState + root.ref, 0, bytes, content};
    case Home::status:
      return {kStatus, 0, bytes, content};
    case Home::constant:
    case Home::packed:
      break;
  }
  return {kFixed, 0, bytes, layout.storage[tensor]};
}

Range staged(Space space, const Port& port) {
  return {space, port.offset, port.offset + ((port.bytes + 15) & ~uint64_t{15}), port.tensor};
}

}  // namespace

PipelineKey pipeline_key(const Dispatch& record) {
  return {.shader = record.shader, .spec = record.spec, .subgroup_size = record.subgroup_size};
}

Slice binding_range(const Slice& tensor, const BindingRange& range) {
  if (tensor.view != nullptr) return tensor;
  const uint64_t bytes = range.bytes != 0 ? (range.bytes + 15) & ~uint64_t{15} : tensor.bytes - range.begin;
  if (range.begin > tensor.bytes || bytes > tensor.bytes - range.begin)
    fail(Code::Internal, Stage::encode, "", "bytes %" PRIu64 " to %" PRIu64 " of a tensor of %" PRIu64, range.begin,
         range.begin + bytes, tensor.bytes);
  return {tensor.buffer, tensor.offset + range.begin, bytes};
}

Ports ports(const Graph& graph, const Layout& layout, bool in_place) {
  const Graph::Impl& impl = graph.impl();
  Ports ports;
  const auto stage = [&](Port& port, uint64_t& end) {
    if (in_place) return;
    port.offset = end;
    end += layout.bytes[port.tensor];
  };
  for (const uint32_t id : impl.method().inputs) {
    ports.inputs.push_back(port(impl, id));
    stage(ports.inputs.back(), ports.upload_bytes);
  }
  for (const uint32_t id : impl.outputs) {
    ports.outputs.push_back(port(impl, id));
    stage(ports.outputs.back(), ports.download_bytes);
  }
  if (impl.status != kNone && !in_place) {
    ports.status_offset = ports.download_bytes;
    ports.download_bytes += 16;
  }
  return ports;
}

std::vector<Step> steps(const Graph& graph, const Layout& layout, const Ports& ports, bool in_place, bool separate) {
  const Graph::Impl& impl = graph.impl();
  const auto at = [&](uint32_t tensor) { return range(impl, layout, tensor); };
  std::vector<Step> steps;
  for (const Port& input : ports.inputs) {
    if (in_place) {
      steps.push_back({.kind = StepKind::host, .writes = {at(input.tensor)}});
    } else {
      steps.push_back({.kind = StepKind::host, .writes = {staged(kUpload, input)}});
      if (input.bytes > 0)
        steps.push_back({.kind = StepKind::copy, .writes = {at(input.tensor)}, .reads = {staged(kUpload, input)}});
    }
  }
  for (uint32_t n = 0; n < impl.nodes.size(); ++n) {
    const Node& node = impl.nodes[n];
    const bool copies = node.kind == NodeKind::copy && impl.bytes(node.writes[0]) > 0;
    if (!copies && node.dispatches.empty()) continue;
    Step step{.kind = copies ? StepKind::copy : StepKind::dispatch, .node = n};
    for (const uint32_t id : node.writes) step.writes.push_back(at(id));
    for (const uint32_t id : node.reads) {
      if (id != kNone) step.reads.push_back(at(id));
    }
    steps.push_back(std::move(step));
  }
  if (!in_place) {
    for (const Port& output : ports.outputs) {
      if (output.bytes == 0) continue;
      Step step{.kind = StepKind::copy, .writes = {staged(kDownload, output)}, .reads = {at(output.tensor)}};
      step.writes[0].content = step.reads[0].content;
      steps.push_back(std::move(step));
    }
    if (impl.status != kNone)
      steps.push_back({.kind = StepKind::copy,
                       .writes = {{kDownload, ports.status_offset, ports.status_offset + 16, impl.status}},
                       .reads = {at(impl.status)}});
  }
  place_barriers(steps);
  if (separate) {
    for (Step& step : steps) step.barrier = step.kind != StepKind::host;
  }
  return steps;
}

}  // namespace pumice::engine
