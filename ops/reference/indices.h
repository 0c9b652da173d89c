// SPDX-License-Identifier: Apache-2.0
// References of operators that read or write where a tensor says, with what they report of an index out of range.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void index_select(HostCall& call);
void gather(HostCall& call);
void index_linear(HostCall& call);
void index_put(HostCall& call);
void index_add(HostCall& call);
// Elements along a dimension. 0: the last of equal indices counts; 1 sum, 2 product, 3 mean, 4 largest, 5 smallest.
void scatter_elements(HostCall& call, int mode);
void embedding(HostCall& call);
void embedding_packed(HostCall& call);  // of q4gsw and q8gsw

}  // namespace pumice::engine::reference
