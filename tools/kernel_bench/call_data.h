// SPDX-License-Identifier: Apache-2.0
// Data for the call of a case, and what comes out: by the operator's fp64 reference, or by what a portable run gave.
#pragma once

#include "ops/shared/host_call.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/call.h"

namespace pumice::engine::kernel_bench {

class CallData : public CaseData {
 public:
  CallData(const Op& op, const Case& c, uint64_t seed);

  std::vector<Argument> arguments() const override;
  std::vector<Output> outputs() const override;
  bool has_rows() const override { return false; }
  std::vector<Expected> expect(size_t output, std::span<const uint64_t> indices) const override;
  std::string reference() const override { return reference_; }
  uint64_t macs() const override;

  // Whether expect() still needs set_results.
  bool needs_run() const { return results_.empty(); }
  // The same call with the same numbers, where T is f32, in buffers.
  CallData portable() const;
  // What the portable run gave: the numbers of each output. Floats may then be off by one rounding to their dtype and
  // 2^-18 of the output's largest number, since another kernel may sum in another order; integers not at all.
  void set_results(const std::vector<std::vector<double>>& results);

 private:
  struct Tensor {
    CallTensor is;
    std::vector<double> values;
  };
  void run_reference(const Op& op);

  Call call_;
  std::vector<std::vector<Tensor>> tensors_;  // of each argument
  std::vector<std::vector<Expected>> results_;
  std::string reference_;
};

}  // namespace pumice::engine::kernel_bench
