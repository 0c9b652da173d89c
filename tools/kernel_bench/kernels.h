// SPDX-License-Identifier: Apache-2.0
// Which kernels a case can be run with.
#pragma once

#include <string>
#include <vector>

#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

// The name under which the pick is reported, and the one of a baseline that only kernel_bench has (file baseline.cpp).
inline constexpr std::string_view kPick = "pick", kPlain = "plain";

// The pick and all kernels of an operator.
std::vector<std::string> all_kernels(const BenchOp& bench_op);
// Names to be forced: those asked for (unknown ones throw InvalidArgument), else the pick and all kernels.
std::vector<std::string> kernels(const BenchOp& bench_op, const Options& options);
// Why `kernel` cannot run the case, as the end of "it ..."; empty when it can.
std::string unsupported_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                               const Features& features);
// Why it is not meant for the case, though it may run, likewise: it is timed when asked for.
std::string not_recommended_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                                   const Features& features);
// The kernel that runs under a name: for "pick" the one that is picked for the case.
std::string resolved(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features);
// The factor of sum|a b| in the error bound of `kernel`.
double bound(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features);
// As Features::kernel takes it: nothing for the pick.
std::string forced(const std::string& kernel);
// The operator whose file runs `kernel`.
std::string op_for(const BenchOp& bench_op, const std::string& kernel);

}  // namespace pumice::engine::kernel_bench
