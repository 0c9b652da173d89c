// SPDX-License-Identifier: Apache-2.0
// Expected results for operators without an fp64 reference: those of a portable run, which is the same call with the
// same numbers in f32, on buffers, with all optional features of the device off.
#pragma once

#include <memory>

#include "tools/kernel_bench/bench_op.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// The data of a case, with expected results; runs the operator where it has no reference.
std::unique_ptr<CaseData> make_data(const std::shared_ptr<Device>& device, const BenchOp& op, const Case& c,
                                    uint64_t seed);

}  // namespace pumice::engine::kernel_bench
