// SPDX-License-Identifier: Apache-2.0
// Reference of elementwise_chain. A step is off by what its operator's own reference allows, and a rounding to the
// dtype that falls to the other side. How far that moves the result is found by moving the step either way and
// computing the rest again; the result is off by the sum over all steps.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void elementwise_chain(HostCall& call);

}  // namespace pumice::engine::reference
