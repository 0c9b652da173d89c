// SPDX-License-Identifier: Apache-2.0
// `kernel compile`: makes the pipelines of each case with each kernel, as a session would, and runs none: for drivers
// whose hardware is not there. Weights are packed by dispatches, which such a driver accepts and does not run.
#include "tools/kernel_bench/compile.h"

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/kernel_bench/compile_times.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/shaders.h"
#include "tools/kernel_bench/table.h"
#include "vulkan/pipeline_log.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

using Names = std::vector<std::string>;  // of kernels

// A row for each kernel. They are loaded together, as weights take most of the time, and alone where one fails.
std::map<std::string, json> compiled(const std::shared_ptr<Device>& device, const CaseData& data, const std::string& op,
                                     const Case& c, const Names& names) {
  std::map<std::string, json> rows;
  try {
    std::vector<Forced> all;
    for (const std::string& name : names) all.push_back(forced(name, c.m));
    const Loaded loaded = load(device, make_file(data, op), all, device->features());
    for (size_t i = 0; i < names.size(); ++i) {
      const std::vector<PipelineKey> keys = pipeline_keys(*loaded.graphs[i]);
      device->pipelines().prepare(keys);
      rows[names[i]] = {{"status", "ok"}, {"pipelines", keys.size()}};
      if (names[i] != kPick) continue;
      for (const PipelineKey& key : keys) rows[names[i]]["made"].push_back(line_of(key));
    }
  } catch (const Error& error) {
    if (names.size() == 1) return {{names[0], {{"status", "failed"}, {"why", error.what()}}}};
    rows.clear();
    for (const std::string& name : names) rows.merge(compiled(device, data, op, c, {name}));
  }
  return rows;
}

const Shader* shader_named(const std::string& name) {
  for (const ShaderFile& file : shader_files())
    for (const Shader& shader : file.variants)
      if (shader.name == name) return &shader;
  return nullptr;
}

// One line of the file. Without constants those of the shader hold.
json compiled(Device& device, const std::string& line) {
  const json wanted = json::parse(line);
  json row = {{"event", "row"}, {"kernel", wanted.at("shader")}, {"title", wanted.at("spec").dump()}};
  const Shader* shader = shader_named(wanted.at("shader"));
  if (shader == nullptr || !may_run(*shader, device.features())) {
    row.update({{"status", "skipped"}, {"why", shader == nullptr ? "no such shader" : "it needs another device"}});
    return row;
  }
  try {
    const PipelineKey key{.shader = shader, .spec = wanted.at("spec"), .subgroup_size = wanted.at("subgroup_size")};
    const auto begin = std::chrono::steady_clock::now();
    device.pipelines().prepare({&key, 1});
    row["compile_ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    row["status"] = "ok";
  } catch (const Error& error) {
    row.update({{"status", "failed"}, {"why", error.what()}});
  }
  return row;
}

uint32_t compile_listed(const Options& options, const Report& report) {
  const auto device = open(options);
  std::ifstream file(options.pipelines);
  if (!file) fail(Code::IoError, Stage::api, options.pipelines, "%s cannot be read", options.pipelines.c_str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  report(device_event(*device, lines.size(), options.seed));
  uint32_t failed = 0;
  for (const std::string& line : lines) try {
      const json row = compiled(*device, line);
      failed += row.at("status") == "failed";
      report(row.dump());
    } catch (const json::exception&) {
      fail(
          Code::InvalidArgument, Stage::api, options.pipelines,
          "%s: '%.100s' is no pipeline such as {\"shader\": \"softmax[f32]\", \"spec\": [32, 1], \"subgroup_size\": 0}",
          options.pipelines.c_str(), printable(line).c_str());
    }
  report(json{{"event", "end"}, {"failed", failed}}.dump());
  return failed;
}

}  // namespace

uint32_t run_compile(const Options& options, const Report& report) {
  if (!options.pipelines.empty()) return compile_listed(options, report);
  const auto device = open(options);
  const std::vector<Case> cases = choose(options, Purpose::compile, device->features().cpu);
  uint64_t rows = 0;
  for (const Case& c : cases) rows += kernels(bench_op(c.op), options).size();
  report(device_event(*device, rows, options.seed));
  uint32_t failed = 0;
  for (const Case& c : cases) {
    const BenchOp& bench_op = kernel_bench::bench_op(c.op);
    const std::unique_ptr<CaseData> data = bench_op.make(c, options.seed);
    const ChosenKernels chosen = choose_kernels(bench_op, c, options, device->features());
    std::map<std::string, json> all;
    for (const auto& [kernel, why] : chosen.left_out) all[kernel] = {{"status", "skipped"}, {"why", why}};
    for (const auto& [op, names] : chosen.files) all.merge(compiled(device, *data, op, c, names));
    for (auto& [kernel, row] : all) {
      failed += row.at("status") == "failed";
      row.update({{"event", "row"}, {"case", text(c)}, {"title", title(c)}, {"kernel", kernel}});
      report(row.dump());
    }
  }
  report(json{{"event", "end"}, {"failed", failed}}.dump());
  return failed;
}

}  // namespace pumice::engine::kernel_bench
