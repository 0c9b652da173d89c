// SPDX-License-Identifier: Apache-2.0
// The sizes of a smaller call that stands for one of a model.
#pragma once

#include <vector>

#include "runtime/one_call.h"

namespace pumice::engine {

// `shapes`: of the call's tensors, the output last; `params`: which of `known`, the operator's, each is, or as many as
// there are. `most`: as OneCall::of has it.
void make_small(const OneCall& call, const std::vector<Param>& known, std::vector<Shape>& shapes,
                const std::vector<size_t>& params, int64_t most);

}  // namespace pumice::engine
