// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/step_state.h"

namespace pumice::engine::reference {

void step_inputs(HostCall& call) {
  const double step = call.tensor(3).values[0];
  const std::vector<double>& from = call.tensor(step == 0 ? 0 : 2).values;
  for (const double token : from) call.out(0).push(token);
  for (const double first : call.tensor(1).values) call.out(1).push(first + step);
}

void step_outputs(HostCall& call) {
  const HostTensor &made = call.tensor(0), &chosen = call.tensor(3);
  const auto step = static_cast<int64_t>(call.tensor(2).values[0]), columns = made.dim(1);
  if (step >= columns) call.reports.push_back({0, static_cast<int32_t>(step), static_cast<int32_t>(columns)});
  for (size_t i = 0; i < made.values.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / columns, column = static_cast<int64_t>(i) % columns;
    call.out(0).push(column == step ? chosen.values[static_cast<size_t>(row)] : made.values[i]);
  }
  for (const double token : chosen.values) call.out(1).push(token);
  call.out(2).push(static_cast<double>(step) + 1 < call.tensor(4).values[0] ? static_cast<double>(step) + 1 : 0);
}

}  // namespace pumice::engine::reference
