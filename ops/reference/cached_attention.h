// SPDX-License-Identifier: Apache-2.0
// Reference of cached_attention, with the bounds of its header comment.
#pragma once

#include "ops/shared/host_call.h"

namespace pumice::engine::reference {

void cached_attention(HostCall& call);
void cached_attention_interleaved(HostCall& call);
void cached_attention_int8(HostCall& call);
void cached_attention_int8_interleaved(HostCall& call);

}  // namespace pumice::engine::reference
