// SPDX-License-Identifier: Apache-2.0
// References of operators on images: pooling, resizing and sampling, of floats (bounds: ops/pool.cpp,
// ops/upsample2d.cpp, ops/grid_sampler_2d.cpp) and of 8-bit integers.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void max_pool(HostCall& call);
void max_pool_with_places(HostCall& call);
void avg_pool(HostCall& call);
void adaptive_avg_pool(HostCall& call);
void q8ta_avg_pool(HostCall& call);
void q8ta_adaptive_avg_pool(HostCall& call);
void upsample2d(HostCall& call);
void grid_sampler_2d(HostCall& call);
void q8ta_upsample2d(HostCall& call);

}  // namespace pumice::engine::reference
