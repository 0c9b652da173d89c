// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/compile_times.h"

#include <chrono>

#include "graph/bind.h"
#include "tools/kernel_bench/file_graph.h"

namespace pumice::engine::kernel_bench {

std::vector<PipelineKey> pipeline_keys(const Graph& graph) {
  std::vector<PipelineKey> keys;
  for (const Node& node : graph.impl().nodes)
    for (const Dispatch& dispatch : node.dispatches)
      if (dispatch.runs()) keys.push_back(pipeline_key(dispatch));
  return keys;
}

nlohmann::json CompileTimes::of(const BenchOp& bench_op, const std::string& kernel, const Case& c) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const std::unique_ptr<CaseData> data = bench_op.make(c, 1);
  const Bytes file = make_file(*data, op_for(bench_op, kernel));
  const FileGraph built = graph_for(file, device_->features(), forced(kernel, c.m));
  double longest = 0;
  PipelineKey slowest;
  try {
    for (const PipelineKey& key : pipeline_keys(*built.graph)) {
      if (!milliseconds_.contains(key)) {
        const auto begin = std::chrono::steady_clock::now();
        device_->pipelines().prepare({&key, 1});
        milliseconds_[key] = Milliseconds(std::chrono::steady_clock::now() - begin).count();
      }
      if (milliseconds_[key] >= longest) longest = milliseconds_[key], slowest = key;
    }
  } catch (const Error& error) {
    return {{"compile_error", error.what()}};
  }
  if (slowest.shader == nullptr) return {{"compile_ms", 0.0}};
  return {{"compile_ms", longest},
          {"compiled", slowest.shader->name},
          {"spec", slowest.spec},
          {"subgroup_size", slowest.subgroup_size}};
}

}  // namespace pumice::engine::kernel_bench
