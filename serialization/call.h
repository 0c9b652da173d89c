// SPDX-License-Identifier: Apache-2.0
// Gate 3 for operator calls: each against its signature, in order, so that every value is written before it is read.
// Private to serialization/.
#pragma once

#include <vector>

#include "serialization/program.h"
#include "serialization/signature.h"
#include "serialization/where.h"

namespace pumice::engine {

// What an operator name of the file stands for.
struct Operator {
  uint32_t index;  // in the signatures given to `read`
  std::string_view name;
  Parameters parameters;
};

class CallChecker {
 public:
  // `defined`: of every value, whether it exists before the next call; each call adds its outputs.
  CallChecker(const Method& method, std::span<const Operator> operators, std::vector<bool>& defined)
      : method_(method), operators_(operators), defined_(defined) {}
  // Also replaces call.op, an index in `operators`, by Operator::index.
  void run(OpCall& call, const Where& at);

 private:
  void arg(Arg& arg, const Operator& op, const Param& param, const Where& at);
  void reads(int64_t value, const Where& at);
  void writes(const OpCall& call, const Operator& op, const Where& at);

  const Method& method_;
  std::span<const Operator> operators_;
  std::vector<bool>& defined_;
};

}  // namespace pumice::engine
