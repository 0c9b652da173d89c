// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "graph/layout.h"
#include "graph/ports.h"
#include "vulkan/device.h"
#include "vulkan/memory.h"

namespace pumice::engine {

// The buffers that all runs of a session use, one after the other: intermediate values, and inputs and outputs on their
// way between host and device.
struct RunBuffers {
  Buffer arena, upload, download;

  // Whether one of them is too small for such a run.
  bool must_grow(const Ports& ports, const Layout& layout) const;
  // Makes those larger that are too small. `left`: bytes that may be taken beyond what the run needs.
  void grow(Device& device, const Ports& ports, const Layout& layout, uint64_t left);
};

}  // namespace pumice::engine
