// SPDX-License-Identifier: Apache-2.0
// Reference of a linear with a norm of x or a gate (ops/fused_linear.cpp), with its bound.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void fused_linear(HostCall& call);

}  // namespace pumice::engine::reference
