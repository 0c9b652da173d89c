// SPDX-License-Identifier: Apache-2.0
// Reference of sample_token: the definition of python/pumice/llm/sampling.py, by sorting.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void sample_token(HostCall& call);

}  // namespace pumice::engine::reference
