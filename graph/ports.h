// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs between the host's memory and the device's.
#pragma once

#include <span>

#include "graph/input_rules.h"
#include "graph/layout.h"
#include "vulkan/memory.h"

namespace pumice::engine {

// Where the host writes an input or reads an output.
struct Port {
  uint32_t tensor;
  DType dtype;
  Shape shape;
  uint64_t count;   // elements
  uint64_t bytes;   // on the device
  uint64_t offset;  // in upload or download; unused where the host works in place
  std::byte* data = nullptr;
  uint32_t bound = kNone;  // in place of this tensor, a kernel's binding is the memory in upload or download
};

struct Ports {
  std::vector<Port> inputs, outputs;
  uint64_t upload_bytes = 0, download_bytes = 0, status_offset = 0;
  uint64_t steps_offset = 0;  // in upload, of a binding of kind steps (graph/merge.h)
};
// `in_place`: the host sees the device's memory, nothing is staged.
Ports ports(const Graph& graph, const Layout& layout, bool in_place);

// MemoryKind::input, or upload where the host sees none of the device's memory or inputs are large.
MemoryKind kind_of_inputs(const Memory& memory, const Ports& ports);

// Sets Port::bound: of inputs that no kernel writes, in MemoryKind::input, and of small outputs that one kernel writes,
// once, and none reads.
void bind_staged(const Graph& graph, const Layout& layout, const Memory& memory, Ports& ports);

// Room for the words of a binding of kind steps.
constexpr uint64_t kStepBytes = 16;
void add_steps(Ports& ports);

// On the host, where int64 has 8 bytes.
uint64_t host_bytes(const Port& port);
// Throws InvalidArgument for a number of int64 that does not fit 32 bits and for a bool that is neither 0 nor 1.
void copy_in(std::span<const Port> ports, std::span<const InputView> inputs, const InputRules& rules);
void copy_out(const Port& output, void* data);  // host_bytes(output) bytes

}  // namespace pumice::engine
