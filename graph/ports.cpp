// SPDX-License-Identifier: Apache-2.0
#include "graph/ports.h"

#include <cinttypes>
#include <cstring>

#include "base/error.h"
#include "graph/convert.h"
#include "graph/suballocator.h"

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

constexpr uint64_t kPortAlignment = 256;  // the largest minStorageBufferOffsetAlignment that Vulkan allows
// Large inputs would take what other programs need of the device memory that the host sees, which may be 256 MB.
constexpr uint64_t kMostOnDevice = 16 << 20;
// Of an output, which a kernel then writes across the bus. A large one keeps the bus as busy as a kernel does.
constexpr uint64_t kMostBound = 1 << 20;

// The nodes that touch the memory of a tensor.
struct Touching {
  uint32_t reads = 0, writes = 0, node = kNone;
};

std::vector<Touching> touching(const Graph::Impl& graph, const Layout& layout) {
  std::vector<Touching> all(graph.tensors.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.kind != NodeKind::copy && node.dispatches.empty()) continue;
    const auto touch = [&](uint32_t tensor, uint32_t Touching::* count) {
      if (tensor == kNone) return;
      Touching& touching = all[layout.memory_root[tensor]];
      ++(touching.*count);
      touching.node = n;
    };
    for (const uint32_t id : node.writes) touch(id, &Touching::writes);
    for (const uint32_t id : node.reads) touch(id, &Touching::reads);
  }
  return all;
}

}  // namespace

MemoryKind kind_of_inputs(const Memory& memory, const Ports& ports) {
  return memory.host_sees_device() && ports.upload_bytes <= kMostOnDevice ? MemoryKind::input : MemoryKind::upload;
}

void bind_staged(const Graph& graph, const Layout& layout, const Memory& memory, Ports& ports) {
  const bool inputs_on_device = kind_of_inputs(memory, ports) == MemoryKind::input;
  const Graph::Impl& impl = graph.impl();
  const std::vector<Touching> all = touching(impl, layout);
  std::vector<uint32_t> taken(impl.tensors.size());  // how many ports have the memory
  for (const auto* side : {&ports.inputs, &ports.outputs})
    for (const Port& port : *side) ++taken[layout.memory_root[port.tensor]];
  const auto bind = [&](Port& port, const auto& may) {
    const uint32_t root = layout.memory_root[port.tensor];
    const TensorInfo& info = impl.tensors[root];
    if (info.memory != MemorySource::arena || info.storage != StorageType::buffer || taken[root] != 1) return;
    if (port.bytes == 0 || layout.bytes[root] != layout.bytes[port.tensor] || !may(root)) return;
    port.bound = root;
  };
  for (Port& input : ports.inputs)
    bind(input, [&](uint32_t root) { return inputs_on_device && all[root].writes == 0; });
  for (Port& output : ports.outputs) {
    bind(output, [&](uint32_t root) {
      if (output.bytes > kMostBound || all[root].writes != 1 || all[root].reads != 0) return false;
      const Node& node = impl.nodes[all[root].node];
      return node.dispatches.size() == 1 && node.dispatches[0].writes_once &&
             layout.memory_root[node.writes[0]] == root;
    });
  }
}

Ports ports(const Graph& graph, const Layout& layout, bool in_place) {
  const Graph::Impl& impl = graph.impl();
  Ports ports;
  const auto stage = [&](Port& port, uint64_t& end) {
    if (in_place) return;
    port.offset = padded(end, kPortAlignment);
    end = port.offset + layout.bytes[port.tensor];
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
    ports.status_offset = padded(ports.download_bytes, kPortAlignment);
    ports.download_bytes = ports.status_offset + 16;
  }
  return ports;
}

void add_steps(Ports& ports) {
  ports.steps_offset = padded(ports.upload_bytes, kStepBytes);
  ports.upload_bytes = ports.steps_offset + kStepBytes;
}

uint64_t host_bytes(const Port& port) {
  return port.dtype == DType::i64 ? port.count * 8 : port.bytes;
}

void copy_in(std::span<const Port> ports, std::span<const InputView> inputs, const InputRules& rules) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = ports[i];
    const std::byte* data = static_cast<const std::byte*>(inputs[i].data);
    if (port.count == 0) continue;
    if (port.dtype == DType::i64) {
      const uint64_t bad = narrow_i64(port.data, data, port.count);
      if (bad != kNoPosition)
        fail(Code::InvalidArgument, Stage::input, rules.path(i),
             "%" PRId64 " at position %" PRIu64 " does not fit 32 bits", read_i64(data, bad), bad);
    } else if (port.dtype == DType::boolean) {
      const uint64_t bad = copy_bool(port.data, data, port.count);
      if (bad != kNoPosition)
        fail(Code::InvalidArgument, Stage::input, rules.path(i),
             "%u at position %" PRIu64 " is not a bool; it must be 0 or 1", std::to_integer<unsigned>(data[bad]), bad);
    } else {
      std::memcpy(port.data, data, port.bytes);
    }
  }
}

void copy_out(const Port& output, void* data) {
  if (output.count == 0) return;
  if (output.dtype == DType::i64) {
    widen_i32(static_cast<std::byte*>(data), output.data, output.count);
  } else {
    std::memcpy(data, output.data, output.bytes);
  }
}

}  // namespace pumice::engine
