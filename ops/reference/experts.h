// SPDX-License-Identifier: Apache-2.0
// References of the operators of a mixture of experts, with the bounds of their header comments.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void route_experts(HostCall& call);
void expert_linear(HostCall& call);

}  // namespace pumice::engine::reference
