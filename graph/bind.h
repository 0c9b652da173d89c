// SPDX-License-Identifier: Apache-2.0
// From a dispatch to what Vulkan takes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// `in_pieces`: for a dispatch of which a part of the workgroups runs at a time.
PipelineKey pipeline_key(const Dispatch& dispatch, bool in_pieces = false);

// The push constants of a dispatch, with the addresses of what is bound. Throws Internal where a binding has fewer
// bytes than its kernel may read.
std::vector<std::byte> push_constants(const Memory& memory, const Dispatch& dispatch, std::span<const Slice> bindings);

// The bytes of a tensor that a kernel sees; of a texture all. Throws Internal where the range leaves the tensor.
Slice binding_range(const Slice& tensor, const BindingRange& range);

}  // namespace pumice::engine
