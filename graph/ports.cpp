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

}  // namespace

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
