// SPDX-License-Identifier: Apache-2.0
// How long a driver compiles the pipelines of a kernel, one at a time: `kernel list --compile`.
#pragma once

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tools/kernel_bench/kernels.h"
#include "vulkan/device.h"

namespace pumice::engine::kernel_bench {

// Those that a run of the graph uses.
std::vector<PipelineKey> pipeline_keys(const Graph& graph);

class CompileTimes {
 public:
  // The device must not have kept pipelines (cache_dir "off"): what it finds in a cache takes no time.
  explicit CompileTimes(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  // Of the case with the kernel, which must be able to run it: "compile_ms", those of the pipeline that takes longest,
  // "compiled", its shader, "spec" and "subgroup_size", as `kernel compile --pipelines` takes them; or "compile_error",
  // what the driver said, and no more.
  nlohmann::json of(const BenchOp& bench_op, const std::string& kernel, const Case& c);

 private:
  std::shared_ptr<Device> device_;
  std::unordered_map<PipelineKey, double, PipelineKeyHash> milliseconds_;  // what was made is there and takes no time
};

}  // namespace pumice::engine::kernel_bench
