// SPDX-License-Identifier: Apache-2.0
// Which kernels a case can be run with.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/kernel_bench.h"

namespace pumice::engine::kernel_bench {

// The names of the picked kernel, of what the table would pick where another one was tuned, and of the baseline
// (baseline.h).
inline constexpr std::string_view kPick = "pick", kTable = "table", kPlain = "plain";

// The pick and all kernels of an operator.
std::vector<std::string> all_kernels(const BenchOp& bench_op);
// The kernels that the options ask for, else the pick, for the regret the table's, and all kernels. Throws
// InvalidArgument for an unknown one.
std::vector<std::string> kernels(const BenchOp& bench_op, const Options& options);
// Why `kernel` cannot run the case, as the end of "it ..."; empty when it can.
std::string unsupported_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                               const Features& features);
// Why `kernel` is not recommended for the case although it can run, likewise. It is timed when it is asked for by name.
std::string not_recommended_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                                   const Features& features);
// The kernels with which a case is run, by the operator in their file (a baseline is one of its own), and why the
// others are left out.
struct ChosenKernels {
  std::map<std::string, std::vector<std::string>> files;
  std::vector<std::pair<std::string, std::string>> left_out;
};
ChosenKernels choose_kernels(const BenchOp& bench_op, const Case& c, const Options& options, const Features& features);
// The kernel that runs: for "pick" the one that is picked for the case.
std::string resolved(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features);
// The error bound of `kernel`.
Bound bound(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features);
// What a graph of it is built with at `rows` rows.
Forced forced(const std::string& kernel, int64_t rows);
// The operator to write into the file so that `kernel` runs.
std::string op_for(const BenchOp& bench_op, const std::string& kernel);

}  // namespace pumice::engine::kernel_bench
