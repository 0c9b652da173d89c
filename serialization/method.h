// SPDX-License-Identifier: Apache-2.0
// Gate 3 inside of one method: symbols, expressions, values, inputs, outputs, operator calls, updates. Private to
// serialization/.
#pragma once

#include "serialization/call.h"
#include "serialization/limits.h"

namespace pumice::engine {

// Replaces OpCall::op, an index in `operators`, by Operator::index.
void check_method(Method& method, const Program& program, std::span<const Operator> operators, const Limits& limits,
                  const Where& at);

}  // namespace pumice::engine
