// SPDX-License-Identifier: Apache-2.0
#include "python/bindings_engine.h"

#include "ops/op.h"
#include "vulkan/instance.h"

std::vector<OpRow> pumice_op_table() {
  std::vector<OpRow> rows;
  for (const pumice::engine::Op& op : pumice::engine::op_table()) {
    std::map<std::string, std::vector<std::string>> axes;
    for (const pumice::engine::Axis& axis : op.variants)
      axes.emplace(axis.name, std::vector<std::string>(axis.values.begin(), axis.values.end()));
    rows.emplace_back(op.signature.name, op.signature.version, op.signature.params, std::move(axes));
  }
  return rows;
}

uint64_t pumice_validation_messages() {
  return pumice::engine::validation_messages();
}
