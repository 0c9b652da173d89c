// SPDX-License-Identifier: Apache-2.0
// References of operators on the last two dimensions: pooling and resizing, of floats (bounds: ops/pool2d.cpp,
// ops/upsample2d.cpp) and of 8-bit integers.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void max_pool2d(HostCall& call);
void avg_pool2d(HostCall& call);
void adaptive_avg_pool2d(HostCall& call);
void q8ta_avg_pool2d(HostCall& call);
void q8ta_adaptive_avg_pool2d(HostCall& call);
void upsample2d(HostCall& call);
void q8ta_upsample2d(HostCall& call);

}  // namespace pumice::engine::reference
