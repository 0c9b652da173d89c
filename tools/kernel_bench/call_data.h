// SPDX-License-Identifier: Apache-2.0
// The data of a case that is a call, and the expected results: from the operator's fp64 reference, or from a portable
// run.
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

  // Whether set_results() must be called before expect(): the operator has no reference.
  bool needs_run() const { return results_.empty(); }
  // The same call with the same numbers, with f32 for T and all tensors in buffers.
  CallData portable() const;
  // `results`: the numbers of each output of the portable run. Floats may differ from them by one rounding to their
  // dtype and by 2^-18 of the output's largest number, because another kernel may sum in another order; integers must
  // be equal.
  void set_results(const std::vector<std::vector<double>>& results);

 private:
  struct Tensor {
    CallTensor is;
    std::vector<double> values;
  };
  void run_reference(const Op& op);

  Call call_;
  std::vector<std::vector<Tensor>> tensors_;  // by argument
  std::vector<std::vector<Expected>> results_;
  std::string reference_;
};

}  // namespace pumice::engine::kernel_bench
