// SPDX-License-Identifier: Apache-2.0
// The pipelines that a graph needs, known before anything is allocated or recorded.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "vulkan/pipeline.h"

namespace pumice::engine {

// Those that pack its constants.
std::vector<PipelineKey> pack_pipelines(const Graph& graph);
// Those that it runs at live shapes, but for nodes that one dispatch may do together (graph/merge.h): whether it does
// is known when a session runs.
std::vector<PipelineKey> run_pipelines(const Graph& graph);
// Those of runs at other sizes: each symbol at its largest, its least and its hint; then, as long as the deadline
// allows, each in turn at powers of two. Kernels are picked by size, so that most sizes run some of these. The graph is
// left at any of them. Throws what the deadline does at the former.
std::vector<PipelineKey> bound_pipelines(Graph& graph, const Deadline& deadline);

}  // namespace pumice::engine
