// SPDX-License-Identifier: Apache-2.0
// `kernel list`: operators, the variants of their shaders with the features they need, and kernels that can be forced.
#include "tools/kernel_bench/list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "ops/op.h"
#include "ops/shared/accepted.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/shaders.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

// Kernels that know the places of matrix elements have it in their names: no capability of SPIR-V says so.
uint64_t features_of(const Shader& shader) {
  const bool places = std::string_view(shader.name).find("fragments") != std::string_view::npos;
  return shader.features | (places ? bit(Feature::fragments) : 0);
}

json needs(uint64_t features) {
  json names = json::array();
  for (uint32_t f = 0; f < kNumFeatures; ++f) {
    if (features & bit(static_cast<Feature>(f))) names.push_back(name(static_cast<Feature>(f)));
  }
  return names;
}

json variants(const ShaderFile& file, const Features& features) {
  json rows = json::array();
  for (const Shader& shader : file.variants) {
    const uint64_t needed = features_of(shader);
    rows.push_back({{"variant", shader.name}, {"needs", needs(needed)}, {"runs", (needed & ~features.bits) == 0}});
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

json kernel_rows(const std::string& op, const Options& options, const Features& features) {
  const BenchOp& bench_op = kernel_bench::bench_op(op);
  Options any = options;
  any.kernels.clear();
  any.ops = {op};
  if (any.cases.empty() && !bench_op.is_call()) any.cases = {"bias=0"};
  const Case c = choose(any, Purpose::bench, true).front();
  json rows = json::array();
  for (const std::string& kernel : kernels(bench_op, any))
    rows.push_back({{"kernel", kernel},
                    {"is", resolved(bench_op, kernel, c, features)},
                    {"unsupported_reason", unsupported_reason(bench_op, kernel, c, features)},
                    {"not_recommended_reason", not_recommended_reason(bench_op, kernel, c, features)}});
  return rows;
}

}  // namespace

std::string run_list(const Options& options) {
  std::for_each(options.ops.begin(), options.ops.end(), must_be_operator);
  const auto device = open(options);
  json operators = json::array(), shaders = json::array();
  for (const Op& op : op_table()) {
    const std::string name(op.signature.name);
    if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), name) == options.ops.end()) continue;
    json row = {
        {"op", name}, {"parameters", op.signature.params}, {"accepts", accepted(op)}, {"kernels", json::array()}};
    if (const ShaderFile* file = main_shader(op)) row["shader"] = file->stem;
    row["kernels"] = kernel_rows(name, options, device->features());
    Options of_this;
    of_this.ops = {name};
    row["cases"] = json::array();
    for (const Case& c : choose(of_this, Purpose::test, true)) row["cases"].push_back(title(c));
    row["compared"] = compared(op.cases.reference != nullptr || !bench_op(name).is_call());
    operators.push_back(std::move(row));
  }
  for (const ShaderFile& file : shader_files())
    shaders.push_back({{"shader", file.stem}, {"variants", variants(file, device->features())}});
  return json{{"schema", 1},
              {"device", json::parse(device_text(*device))},
              {"operators", std::move(operators)},
              {"shaders", std::move(shaders)}}
      .dump();
}

}  // namespace pumice::engine::kernel_bench
