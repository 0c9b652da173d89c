// SPDX-License-Identifier: Apache-2.0
// The order of execution: nodes by level, so that those between two barriers do not depend on each other; which of them
// work in place; and the copies of new values into states.
#pragma once

#include "graph/graph_impl.h"

namespace pumice::engine {

// Called by build after the last operator.
void schedule(Graph::Impl& graph);

}  // namespace pumice::engine
