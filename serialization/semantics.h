// SPDX-License-Identifier: Apache-2.0
// Gate 3, second half: what must hold between the objects of a program. Private to serialization/.
#pragma once

#include "serialization/decode.h"
#include "serialization/limits.h"
#include "serialization/signature.h"

namespace pumice::engine {

// Replaces OpCall::op by the index in `signatures`.
void check_semantics(Program& program, std::span<const OpName> op_names, std::span<const Signature> signatures,
                     const Limits& limits);

}  // namespace pumice::engine
