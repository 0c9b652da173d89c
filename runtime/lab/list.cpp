// SPDX-License-Identifier: Apache-2.0
// `kernel list`: operators, what their shaders need, and the kernels that can be forced.
#include <nlohmann/json.hpp>

#include "ops/op.h"
#include "runtime/lab/command.h"
#include "runtime/lab/kernels.h"

namespace pumice::lab {

using nlohmann::json;

std::string run_list(const Options& options) {
  const auto device = open(options);
  for (const std::string& op : options.ops) subject(op);
  json ops = json::array(), kernels = json::array();
  for (const Op& op : op_table()) {
    if (!options.ops.empty() &&
        std::find(options.ops.begin(), options.ops.end(), op.signature.name) == options.ops.end())
      continue;
    json axes = json::object();
    for (const Axis& axis : op.variants)
      axes[std::string(axis.name)] = std::vector<std::string>(axis.values.begin(), axis.values.end());
    ops.push_back({{"op", op.signature.name}, {"parameters", op.signature.params}, {"variants", axes}});
  }
  for (const LinearKernel& kernel : linear_kernels()) {
    const std::string reason =
        pumice::why_not(kernel, {1, 4096, 4096, 32, Storage::q4, DType::f16, false}, device->features());
    kernels.push_back({{"kernel", kernel.name}, {"why_not", reason}});
  }
  return json{{"schema", 1}, {"device", json::parse(device_text(*device))}, {"operators", ops}, {"kernels", kernels}}
      .dump();
}

}  // namespace pumice::lab
