// SPDX-License-Identifier: Apache-2.0
// `kernel list`: operators, the variants of their shaders with the features they need, and kernels that can be forced.
#include "tools/kernel_bench/list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "graph/bind.h"
#include "ops/op.h"
#include "ops/shared/accepted.h"
#include "tools/kernel_bench/compile_times.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/file_graph.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/profile.h"
#include "tools/kernel_bench/shaders.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

json names_of(uint64_t features) {
  json names = json::array();
  for (uint32_t f = 0; f < kNumFeatures; ++f) {
    if (features & bit(static_cast<Feature>(f))) names.push_back(name(static_cast<Feature>(f)));
  }
  return names;
}

json variants(const ShaderFile& file, const Features& features) {
  json rows = json::array();
  for (const Shader& shader : file.variants) {
    json names = names_of(needs(shader));
    if (is_for_cpu(shader)) names.push_back("cpu");
    rows.push_back({{"variant", shader.name}, {"needs", std::move(names)}, {"runs", may_run(shader, features)}});
  }
  return rows;
}

// The shader whose axes an operator's row names; null when the row names its own axes.
const ShaderFile* main_shader(const Op& op) {
  for (const ShaderFile& file : shader_files()) {
    if (!op.variants.empty() && file.axes.data() == op.variants.data()) return &file;
  }
  return nullptr;
}

// The case that a row is about: the one asked for, or a usual one.
Case case_of(const BenchOp& bench_op, const Options& options) {
  Options any = options;
  any.kernels.clear();
  any.ops = {std::string(bench_op.op)};
  if (any.cases.empty() && !bench_op.is_call()) any.cases = {"bias=0"};
  return choose(any, Purpose::bench, true).front();
}

// With the times of their pipelines where `times` is not null.
json kernel_rows(const BenchOp& bench_op, const Case& c, const Features& features, CompileTimes* times) {
  json rows = json::array();
  for (const std::string& kernel : kernels(bench_op, {})) {
    const std::string unsupported = unsupported_reason(bench_op, kernel, c, features);
    rows.push_back({{"kernel", kernel},
                    {"is", resolved(bench_op, kernel, c, features)},
                    {"unsupported_reason", unsupported},
                    {"not_recommended_reason", not_recommended_reason(bench_op, kernel, c, features)}});
    if (times != nullptr && unsupported.empty()) rows.back().update(times->of(bench_op, kernel, c));
  }
  return rows;
}

// What a run of the case dispatches on a device with these features, which need not be here.
json dispatches(const BenchOp& bench_op, const Case& c, const Features& features) {
  const std::unique_ptr<CaseData> data = bench_op.make(c, 1);
  const Bytes file = make_file(*data, bench_op.op);
  const FileGraph built = graph_for(file, features, {"", c.m});
  json rows = json::array();
  for (const Node& node : built.graph->impl().nodes) {
    for (const Dispatch& dispatch : node.dispatches) {
      const PipelineKey key = pipeline_key(dispatch);
      rows.push_back({{"shader", key.shader->name},
                      {"invocations", key.spec.at(0)},
                      {"workgroups", dispatch.groups},
                      {"subgroup_size", key.subgroup_size},
                      {"spec", key.spec}});
    }
  }
  return rows;
}

// Where selection has its numbers from.
json selection(const Options& options, const Features& features) {
  const char* device = options.profile.empty() ? "device" : "profile";
  return {{"compute_units", features.units()},
          {"compute_units_from", features.compute_units != 0 ? device : "default"},
          {"kernels_from", features.tuned != nullptr ? "tuned, else table" : "table"}};
}

}  // namespace

std::string run_list(const Options& options) {
  std::for_each(options.ops.begin(), options.ops.end(), must_be_operator);
  if (options.compile && !options.profile.empty())
    fail(Code::InvalidArgument, Stage::api, "compile", "a profile has no compiler: leave out --profile or --compile");
  Options opened = options;
  if (options.compile) opened.cache_dir = "off";
  const auto device = options.profile.empty() ? open(opened) : nullptr;
  const DeviceInfo info = device ? device->info() : read_profile(options.profile);
  const Features features = device ? device->features() : features_of(info, options.features);
  std::unique_ptr<CompileTimes> times;
  if (options.compile) times = std::make_unique<CompileTimes>(device);
  json operators = json::array(), shaders = json::array();
  for (const Op& op : op_table()) {
    const std::string name(op.signature.name);
    if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), name) == options.ops.end()) continue;
    json row = {
        {"op", name}, {"parameters", op.signature.params}, {"accepts", accepted(op)}, {"kernels", json::array()}};
    if (const ShaderFile* file = main_shader(op)) row["shader"] = file->stem;
    const BenchOp& bench_op = kernel_bench::bench_op(name);
    const Case asked = case_of(bench_op, options);
    row["kernels"] = kernel_rows(bench_op, asked, features, times.get());
    row["case"] = title(asked);
    row["dispatches"] = json::array();
    if (!options.ops.empty()) row["dispatches"] = dispatches(bench_op, asked, features);  // of all: ten seconds
    Options of_this;
    of_this.ops = {name};
    row["cases"] = json::array();
    for (const Case& c : choose(of_this, Purpose::test, true)) row["cases"].push_back(title(c));
    row["compared"] = compared(op.cases.reference != nullptr || !bench_op.is_call());
    operators.push_back(std::move(row));
  }
  for (const ShaderFile& file : shader_files())
    shaders.push_back({{"shader", file.stem}, {"variants", variants(file, features)}});
  return json{{"schema", 1},
              {"device", json::parse(device_text(info, features))},
              {"selection", selection(options, features)},
              {"operators", std::move(operators)},
              {"shaders", std::move(shaders)}}
      .dump();
}

}  // namespace pumice::engine::kernel_bench
