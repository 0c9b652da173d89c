// SPDX-License-Identifier: Apache-2.0
// Is what a run left in the harness right? Every output, and the words in which kernels report trouble.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/kernel_bench/check.h"
#include "tools/kernel_bench/harness.h"

namespace pumice::engine::kernel_bench {

// What each output of a case must be; `rows`: those that are run.
std::vector<ExpectedOutput> expected_outputs(const CaseData& case_data, std::span<const int64_t> rows, uint64_t seed);
// What is wrong after a run at `m` rows, empty when nothing is; `bound`: the kernel's bound. `row` gets the number of
// elements that were compared, and the largest error as a part of what is allowed.
std::string wrong(Harness& harness, const CaseData& case_data, std::span<const ExpectedOutput> expected, int64_t m,
                  const Bound& bound, nlohmann::json& row);
// The same of outputs that a session gave; `bound`: that of bound_of.
std::string wrong(std::span<const Bytes> outputs, std::span<const ExpectedOutput> expected, int64_t m,
                  const Bound& bound, nlohmann::json& row);
// Runs the kernels once, in memory that held other bytes before.
void run_once(const std::shared_ptr<Device>& device, Harness& harness, std::span<const Data> inputs);
// With what the kernels that run in the harness may be off in addition.
Bound bound_of(const Harness& harness, Bound bound);

}  // namespace pumice::engine::kernel_bench
