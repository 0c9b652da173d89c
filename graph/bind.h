// SPDX-License-Identifier: Apache-2.0
// From a dispatch to what Vulkan takes.
#pragma once

#include "graph/graph.h"
#include "vulkan/memory.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// `in_pieces`: for a dispatch of which a part of the workgroups runs at a time.
PipelineKey pipeline_key(const Dispatch& dispatch, bool in_pieces = false);

// The bytes of a tensor that a kernel sees; of a texture all. Throws Internal where the range leaves the tensor.
Slice binding_range(const Slice& tensor, const BindingRange& range);

}  // namespace pumice::engine
