// SPDX-License-Identifier: Apache-2.0
// References of ops/step_state.cpp: exact.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void step_inputs(HostCall& call);
void step_outputs(HostCall& call);

}  // namespace pumice::engine::reference
