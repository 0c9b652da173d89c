// SPDX-License-Identifier: Apache-2.0
// A graph of a file for a device that need not be here.
#pragma once

#include "tools/kernel_bench/harness.h"

namespace pumice::engine::kernel_bench {

struct FileGraph {
  Loaded loaded;  // without weights
  std::unique_ptr<Graph> graph;
};

// The file must outlive it, and be our own: no hash is checked. Shapes are at `kernel.m` rows.
FileGraph graph_for(std::span<const std::byte> file, const Features& features, const Forced& kernel);

}  // namespace pumice::engine::kernel_bench
