// SPDX-License-Identifier: Apache-2.0
// References of operators that compute element by element: binary ones with broadcasting, clamp, cast.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

// BINARY_* and COMPARE_*, LOGICAL_* of glsl/include/core/modes.glslh. Error of floats: none beside the rounding of the
// result where it is one operation of IEEE 754 or a choice (maximum, minimum, fmod, div_floor); 400 ulp of fp32 for
// pow, 8 for atan2, 4 for the others, 32 ulp and 2^-21 |b| for elu. Of sums the ulps are those of |a| + |b|.
double of_floats(uint32_t code, double a, double b);
double error_of_floats(uint32_t code, double a, double b, double y);
bool compare(uint32_t code, double a, double b);
void arithmetic(HostCall& call, uint32_t code);
void comparison(HostCall& call, uint32_t code);
void clamp(HostCall& call);
void cast(HostCall& call);

}  // namespace pumice::engine::reference
