// SPDX-License-Identifier: Apache-2.0
// The operators that a case may call: the engine's, and the baselines that only kernel_bench has.
#pragma once

#include "graph/build.h"
#include "ops/op.h"

namespace pumice::engine::kernel_bench {

std::span<const Signature> signatures();
const OperatorCallbacks& builder();
// The row of the engine's operator `name`; null when there is none.
const Op* find_op(std::string_view name);
// Throws InvalidArgument with the nearest of `known` when `got` is not among them.
void must_be_one_of(const char* what, std::string_view got, std::span<const std::string_view> known);
void must_be_operator(std::string_view name);

}  // namespace pumice::engine::kernel_bench
