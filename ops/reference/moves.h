// SPDX-License-Identifier: Apache-2.0
// References of operators that move elements: exact.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void permute(HostCall& call);
void patches(HostCall& call);
void expand(HostCall& call);
void slice(HostCall& call);
void select(HostCall& call);
void flip(HostCall& call);
void repeat(HostCall& call);
void view(HostCall& call);
void cat(HostCall& call);
void pad(HostCall& call);
void pad_from_inside(HostCall& call, int mode);
void triu(HostCall& call);
void tril(HostCall& call);
void where(HostCall& call);
void lookup(HostCall& call);
void slice_scatter(HostCall& call);
void full(HostCall& call);
void arange(HostCall& call);

}  // namespace pumice::engine::reference
