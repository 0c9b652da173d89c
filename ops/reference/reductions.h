// SPDX-License-Identifier: Apache-2.0
// References of operators that join many elements: reductions, scans, norms. Bounds: ops/reduce.cpp, ops/scan.cpp,
// ops/norm.cpp.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void reduce(HostCall& call, uint32_t code);  // REDUCE_*
void scan(HostCall& call, int code);         // OP of glsl/scan.glsl
void layer_norm(HostCall& call);
void rms_norm(HostCall& call);
void group_norm(HostCall& call);

}  // namespace pumice::engine::reference
