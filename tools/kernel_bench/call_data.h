// SPDX-License-Identifier: Apache-2.0
// The data of a case that is a call, and the results that the operator's fp64 reference expects. The reference runs
// when the first result is asked for: of large cases it takes seconds.
#pragma once

#include <optional>

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
  bool has_reference() const override { return op_.cases.reference != nullptr; }
  std::vector<HostReport> reports() const override { return results().reports; }
  uint64_t macs() const override;

 private:
  struct Tensor {
    CallTensor is;
    std::vector<double> values;
  };
  struct Results {
    std::vector<std::vector<Expected>> outputs;  // empty without a reference
    std::vector<HostReport> reports;
  };
  const Results& results() const;
  Results run_reference() const;

  const Op& op_;
  Call call_;
  std::vector<std::vector<Tensor>> tensors_;  // of each argument
  mutable std::optional<Results> results_;
};

}  // namespace pumice::engine::kernel_bench
